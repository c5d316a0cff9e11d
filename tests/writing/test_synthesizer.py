"""Joint training: the instances of a row, the loss by hand, the measures by a slow way, and learning itself."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batches
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.training import Settings
from sentloom.writing.denoising import Denoising, DenoisingOptions, infilled
from sentloom.writing.instances import instances
from sentloom.writing.learning import apart, train_denoising, train_synthesizer
from sentloom.writing.measure import measure
from sentloom.writing.synthesizer import Synthesizer, SynthesizerOptions
from sentloom.writing.text_to_text import TextToText
from tests.small_data import build_dataset
from tests.writing.oracles import read_to_judge, read_to_write
from tests.writing.small_synthesizers import SHORT, build_small_t5, labelled, triplets


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("t5") / "model", width=64)


@pytest.fixture
def model(folder):
    return TextToText.load(folder, wording=SHORT)


def slow_losses(model, batch):
    """(summed cross-entropy, tokens, first logits) of every instance, one at a time, in float64."""
    big = model.model.double().eval()
    found = []
    for one in instances(model, batch):
        start = torch.tensor([[model.start, *one.target[:-1]]])
        with torch.no_grad():
            logits = big(input_ids=torch.tensor([one.source]), decoder_input_ids=start).logits[0]
        chances = logits.log_softmax(dim=-1)
        found.append((-sum(float(chances[at, token]) for at, token in enumerate(one.target)), one, logits[0]))
    model.model.float()
    return found


def test_four_instances_of_a_triplet(model):
    batch = Batches(triplets(), 2, seed=3).batch(0)
    found = instances(model, batch)
    assert len(found) == 8
    anchor, positive, negative = batch.texts["anchor"][0], batch.texts["positive"][0], batch.texts["negatives"][0][0]
    assert [(one.source, one.target, one.judged) for one in found[:4]] == [
        (read_to_write(model, anchor, "entailment"), model.target_ids(positive), False),
        (read_to_judge(model, anchor, positive), model.target_ids("true"), True),
        (read_to_write(model, anchor, "contradiction"), model.target_ids(negative), False),
        (read_to_judge(model, anchor, negative), model.target_ids("false"), True),
    ]


def test_labelled_pairs_teach_the_same_and_neutral_ones_nothing(model):
    both = [
        {(tuple(one.source), tuple(one.target)) for one in instances(model, Batches(data, size, seed=0).batch(0))}
        for data, size in ((triplets(20), 20), (labelled(20), 60))
    ]
    assert both[0] == both[1]


@pytest.mark.parametrize("judge_weight", [1.0, 3.0])
def test_the_loss_by_hand(model, judge_weight):
    method = Synthesizer(model, SynthesizerOptions(wording=SHORT, judge_weight=judge_weight)).eval()
    batch = Batches(triplets(), 5, seed=1).batch(0)
    weighed = [(loss, one, judge_weight if one.judged else 1.0) for loss, one, _ in slow_losses(model, batch)]
    tokens = sum(len(one.target) * weight for _, one, weight in weighed)
    assert method.weight(batch) == tokens
    assert method.summed_loss(batch).item() == pytest.approx(sum(loss * w for loss, _, w in weighed), rel=1e-5)
    halves = sum(method.summed_loss(batch.part(at, at + 2)).item() for at in (0, 2, 4))
    assert halves == pytest.approx(method.summed_loss(batch).item(), rel=1e-5)


def test_the_measures_by_hand(model):
    data = triplets(30)
    found = measure(model, data)
    slow = slow_losses(model, Batches(data, 30, seed=0).batch(0))
    true, false = model.verdict_ids
    right = [bool(first[true] > first[false]) == (one.target[0] == true) for _, one, first in slow if one.judged]
    written = [(loss, len(one.target)) for loss, one, _ in slow if not one.judged]
    perplexity = math.exp(sum(loss for loss, _ in written) / sum(tokens for _, tokens in written))
    assert found.accuracy == pytest.approx(np.mean(right))
    assert found.perplexity == pytest.approx(perplexity, rel=1e-4)
    assert found.rows == 60
    assert found.score == pytest.approx(100 * found.accuracy - 10 * found.perplexity)


def test_measuring_leaves_the_model_as_it_was(model):
    model.train()
    assert measure(model, triplets(3)) == measure(model, triplets(3))  # without dropout
    assert model.training


def test_no_premise_is_on_both_sides():
    for data in (triplets(), labelled()):
        learned, held_out = apart(data, 0.2)
        name = "premise" if data.shape is Shape.NLI else "anchor"
        sides = [set(part.column(name).to_pylist()) for part in (learned, held_out)]
        assert not sides[0] & sides[1]
        assert 0.1 < len(sides[1]) / len(sides[0] | sides[1]) < 0.3
    assert learned.skipped["neutral rows"] == 192
    assert "neutral" not in learned.column("label").to_pylist()
    fewer = set(apart(triplets(100), 0.2)[1].column("anchor").to_pylist())
    assert fewer <= sides[1]  # what is held out does not depend on the other rows


def test_data_that_teach_nothing_are_refused():
    texts = build_dataset(Shape.TEXTS, [("a",), ("b",)])
    with pytest.raises(InputError, match="triplets or nli"):
        apart(texts, 0.5)
    with pytest.raises(InputError, match="no rows held out"):
        apart(triplets(3), 0.0)


def test_spans_become_masks():
    draw = np.random.default_rng(0)
    options = DenoisingOptions(share=0.4)
    masks = []
    for _ in range(300):
        left = infilled(list(range(10, 30)), 2, options, draw)
        kept = [token for token in left if token != 2]
        assert kept == sorted(kept)
        assert all(a != 2 or b != 2 for a, b in pairwise(left))  # one mask a span
        gone = 20 - len(kept)
        assert 1 <= gone <= 8
        masks.append((left.count(2), gone))
    assert 6 < np.mean([gone for _, gone in masks]) <= 8
    assert 2 < np.mean([gone / count for count, gone in masks]) < 4
    assert infilled([7], 2, DenoisingOptions(share=0.0), draw) == [7]
    assert infilled([], 2, options, draw) == []


def test_denoising_reads_what_is_left_and_writes_the_whole(model):
    method = Denoising(model, DenoisingOptions())
    data = build_dataset(Shape.TEXTS, [(row,) for row in triplets().column("anchor").to_pylist()])
    batch = Batches(data, 8, seed=0).batch(0)
    for text, one in zip(batch.first, method.instances(batch), strict=True):
        assert one.target == model.target_ids(text)
        assert len(one.source) <= len(one.target)
        assert {*one.source} - {method.mask} <= {*one.target}
    whole = method.instances(batch)
    assert whole == [one for at in (0, 3, 6) for one in method.instances(batch.part(at, min(at + 3, 8)))]


@pytest.mark.long
def test_it_learns_to_write_and_to_judge(folder, tmp_path):
    """A rule that a small model can learn: what follows is shorter, what contradicts begins with nobody."""
    settings = Settings(batch=24, steps=45, learning_rate=3e-3, log_every=20)
    warm = train_denoising(
        str(folder),
        build_dataset(Shape.TEXTS, [(row,) for row in triplets().column("anchor").to_pylist()]),
        DenoisingOptions(),
        settings.model_copy(update={"steps": 6}),
        seed=1,
        folder=tmp_path / "warm",
    )
    assert warm["outcome"]["steps"] == 6
    options = SynthesizerOptions(wording=SHORT, held_out=0.2, every=30)
    base = str(tmp_path / "warm" / "model")
    found = train_synthesizer(base, labelled(), options, settings, seed=1, folder=tmp_path / "run")
    before, after = found["held_out"]["before"], found["held_out"]["after"]
    assert after["accuracy"] > 0.85
    assert after["perplexity"] < 0.5 * before["perplexity"]
    assert TextToText.load(tmp_path / "run" / "model").sha256 == found["fingerprint"]


@pytest.mark.long
def test_a_run_that_was_stopped_ends_the_same(folder, tmp_path, monkeypatch):
    options = SynthesizerOptions(wording=SHORT, held_out=0.2, every=3)
    settings = Settings(batch=8, steps=8, learning_rate=1e-3, checkpoint_seconds=0)

    def run(name):
        return train_synthesizer(str(folder), triplets(), options, settings, seed=1, folder=tmp_path / name)

    whole = run("whole")
    step, count = Synthesizer.after_step, iter(range(100))

    def die(self):
        if next(count) == 5:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Synthesizer, "after_step", die)
    with pytest.raises(KeyboardInterrupt):
        run("cut")
    monkeypatch.setattr(Synthesizer, "after_step", step)
    rest = run("cut")
    assert rest["outcome"]["resumed_at"] == 5
    assert rest["fingerprint"] == whole["fingerprint"]
    assert rest["held_out"] == whole["held_out"]
