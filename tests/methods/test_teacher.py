"""A teacher's neighbourhoods: the loss by loops, the queue, rankings of passages, and a student that comes closer."""

from functools import cache

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batch, Batches
from sentloom.data.shapes import Shape
from sentloom.methods.teacher import Teacher, TeacherOptions
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS, optimise, texts_batch
from tests.methods.oracles import cos
from tests.small_data import build_dataset

TEXTS = [*SENTENCES, *OTHERS]
TRIPLETS = [
    (a[:12], b, [TEXTS[row], TEXTS[row + 3], b]) for row, (a, b) in enumerate(zip(SENTENCES, OTHERS, strict=True))
]


def kl(target, source):
    """KL(softmax(source) || softmax(target)), by hand."""
    p, q = (np.exp(np.array(scores) - max(scores)) for scores in (source, target))
    p, q = p / p.sum(), q / q.sum()
    return float(sum(a * np.log(a / b) for a, b in zip(p, q, strict=True)))


def joined(vectors):
    """Unit vectors side by side."""
    return np.concatenate([vector / np.sqrt(vector @ vector) for vector in vectors])


@pytest.fixture(scope="module")
def sources(model_folder):
    return str(model_folder("roberta")), str(model_folder("t5"))


@pytest.fixture
def method(encoder, sources):
    return Teacher(encoder, TeacherOptions(sources=sources, queue=5, temperature=0.1, negatives=2)).double().eval()


@pytest.fixture
def vectors(method):
    """The target's and the joined sources' vector of a text, each text alone."""

    @cache
    def of(text):
        with torch.no_grad():
            t = method.encoder(method.encoder.tokenize([text]), raw=True)[0].numpy()
        return t, joined([source.encoder.encode([text])[0].astype(float) for source in method.guides])

    return of


def test_texts_are_compared_with_all_others_of_batch_and_queue(method, vectors):
    method.train()
    for module in method.encoder.modules():
        module.training = False  # without dropout, vectors are those of the oracle
    held = []
    for step, rows in enumerate(([0, 1, 2], [3, 1, 4, 5], [6, 7, 8, 9])):  # one text comes back
        texts = [TEXTS[row] for row in rows]
        batch, expected = texts_batch(texts, key=(0, step)), []
        for text in texts:
            others = [other for other in [*texts, *held] if other != text]
            t, s = vectors(text)
            both = [[cos(own, vectors(other)[side]) / 0.1 for other in others] for side, own in enumerate((t, s))]
            expected.append(kl(*both))
        loss = method.total_loss(method.embed(batch), batch).item()
        assert loss == pytest.approx(np.mean(expected), rel=1e-4), step  # the sources compute in float32
        method.after_step()
        held = (held + texts)[-5:]
        assert len(method.queue) == len(held)


def test_triplets_rank_passages_for_short_texts_and_back(method, vectors):
    batch = Batches(build_dataset(Shape.TRIPLETS, TRIPLETS), 4, seed=0).batch(0)
    passages = list(dict.fromkeys(text for text in method.passages(batch) if text))
    assert len(passages) < 4 * 3  # some are passages of two short texts

    def ranked(left, right):
        total = 0.0
        for text in left:
            sides = ((vectors(text)[side], [vectors(other)[side] for other in right]) for side in (0, 1))
            total += kl(*([cos(own, other) / 0.1 for other in others] for own, others in sides))
        return total / len(left)

    expected = ranked(batch.first, passages) + ranked(passages, batch.first)
    assert method.total_loss(method.embed(batch), batch).item() == pytest.approx(expected, rel=1e-4)
    assert len(method.queue) == 0


def test_a_pass_in_parts_gives_the_same_vectors(method):
    batch = Batches(build_dataset(Shape.TRIPLETS, TRIPLETS), 4, seed=0).batch(0)
    parts = [method.embed(batch.part(start, start + 2)) for start in (0, 2)]
    for whole, part in zip(method.embed(batch), map(torch.cat, zip(*parts, strict=True)), strict=True):
        torch.testing.assert_close(part, whole, atol=1e-6, rtol=0)


def test_the_first_dimensions_learn_from_whole_sources(encoder, sources):
    options = TeacherOptions(sources=sources, queue=0, dimensions=(32, 8))
    method = Teacher(encoder, options).double().eval()
    batch = texts_batch(TEXTS[:5])
    t, s = method.embed(batch)
    parts = [method.loss((t[:, :m], s), batch).item() for m in (32, 8)]
    assert method.total_loss((t, s), batch).item() == pytest.approx(sum(parts))


@pytest.mark.parametrize("shape", [Shape.TEXTS, Shape.TRIPLETS])
def test_stored_vectors_give_the_same_loss(method, shape, tmp_path):
    data = build_dataset(shape, [(text,) for text in TEXTS] if shape is Shape.TEXTS else TRIPLETS)
    batch = Batches(data, 4, seed=0).batch(0)
    computed = method.total_loss(method.embed(batch), batch).item()
    method.prepare(data, tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 2  # one file for each source
    assert method.total_loss(method.embed(batch), batch).item() == pytest.approx(computed, rel=1e-5)


def test_the_student_comes_closer_to_its_teacher(encoder, sources):
    encoder.backbone.dropout = 0.0
    method = Teacher(encoder, TeacherOptions(sources=sources[:1], queue=8))
    before = [weights.clone() for weights in method.sources.parameters()]
    losses = optimise(method, [texts_batch(TEXTS, key=(0, step)) for step in range(30)], rate=3e-3)
    assert min(losses[-5:]) < losses[0] / 2
    after = method.sources.parameters()
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))  # the sources are frozen


def test_a_single_text_teaches_nothing(encoder, sources):
    method = Teacher(encoder, TeacherOptions(sources=sources, queue=4)).eval()
    batch = Batch({"text": ["alone", "Alone "]}, np.arange(2), np.arange(2), (0, 0))  # two copies of one text
    assert method.total_loss(method.embed(batch), batch).item() == 0.0
