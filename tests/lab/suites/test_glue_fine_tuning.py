"""Fine-tuning: a copy of the encoder learns a task that its own vectors do not show, and the encoder stays as it was."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.evaluation.metrics import METRICS
from sentloom.lab.suites import glue
from sentloom.lab.suites.glue import Classifier, Examples, Parts, fine_tune
from tests.encoder.small_models import build_model_folder

ACCURACY = METRICS["accuracy"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    torch.manual_seed(0)
    return Encoder.load(build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert"), pooling="first")


def same_word(count, seed):
    """Pairs of words: 1 if both are equal. Each word alone says nothing."""
    rng = np.random.default_rng(seed)
    words = ["dog", "man", "train"]
    chosen = [(rng.choice(words), rng.choice(words) if n % 2 else None) for n in range(count)]
    first = [str(word) for word, _ in chosen]
    second = [str(other) if other is not None else word for word, (_, other) in zip(first, chosen, strict=True)]
    return Examples((first, second), [int(a == b) for a, b in zip(first, second, strict=True)])


def test_it_learns_from_both_texts_of_a_pair_and_leaves_the_encoder_alone(encoder, monkeypatch):
    monkeypatch.setattr(glue, "SETTINGS", glue.SETTINGS.model_copy(update={"learning_rate": 3e-3}))
    before = encoder.fingerprint()
    train, dev, test = same_word(640, 1), same_word(40, 2), same_word(60, 3)
    answers = fine_tune(encoder, Parts(train, dev, test), ACCURACY, seed=1)
    assert answers[:, 1].tolist() == test.classes
    assert ACCURACY(answers) > 0.85  # two thirds of the pairs are equal
    assert encoder.fingerprint() == before
    assert encoder.tokenize(["dog " * 100])[0].__len__() == encoder.tokens.max_length  # not cut by the copy's tokenizer


def test_a_seed_gives_the_same_answers_and_leaves_the_generator_alone(encoder):
    parts = same_word(40, 1), same_word(20, 2), same_word(20, 3)
    torch.manual_seed(5)
    first = fine_tune(encoder, Parts(*parts), ACCURACY, seed=1)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))
    assert np.array_equal(first, fine_tune(encoder, Parts(*parts), ACCURACY, seed=1))


def test_the_answers_are_those_after_the_best_epoch(encoder):
    parts = same_word(40, 1), same_word(20, 2), same_word(20, 3)
    scores = iter([0.5, 0.9, 0.9])  # of the three epochs
    asked = []
    best = fine_tune(encoder, Parts(*parts), lambda answers: asked.append(answers) or next(scores), seed=1)
    assert len(asked) == 3
    scores = iter([0.5, 0.9, 0.1])
    assert np.array_equal(best, fine_tune(encoder, Parts(*parts), lambda answers: next(scores), seed=1))


def test_a_pair_is_one_input_with_two_segments(encoder):
    classifier = Classifier(encoder, 2)
    read = classifier._tokenize(Examples((["dog"], ["man"]), [0]))
    cls, sep = classifier.tokenizer.cls_token_id, classifier.tokenizer.sep_token_id
    ids, kinds = read["input_ids"][0].tolist(), read["token_type_ids"][0].tolist()
    assert ids[0] == cls
    assert [at for at, token in enumerate(ids) if token == sep] == [kinds.index(1) - 1, len(ids) - 1]


def test_rows_are_answered_in_their_order(encoder):
    classifier = Classifier(encoder, 2).eval()
    rows = Examples((["dog " * length for length in (9, 1, 30, 4)],), [0, 1, 0, 1])
    alone = [classifier(rows.take([row])).argmax().item() for row in range(4)]
    assert classifier.predict(rows).tolist() == [
        [predicted, gold] for predicted, gold in zip(alone, rows.classes, strict=True)
    ]


@pytest.mark.parametrize("family", ["roberta", "t5"])
def test_models_without_segments_or_cls_can_be_fine_tuned(tmp_path, family):
    encoder = Encoder.load(build_model_folder(family, tmp_path / family), pooling="mean")
    parts = same_word(40, 1), same_word(10, 2), same_word(10, 3)
    assert fine_tune(encoder, Parts(*parts), ACCURACY, seed=1).shape == (10, 2)
