"""Selection: the best is kept and brought back; patience and endurance by hand; the untrained encoder never wins."""

import pytest
import torch

from sentloom.training import Selection, train
from tests.training.small_runs import build, data_for, journal, settings, unequal


def trained(bert, folder, scores, **options):
    """Train with the given scores, and remember the encoder at each of them."""
    method, seen, rest = build("simcse", bert), [], iter(scores)

    def score(encoder):
        seen.append({name: tensor.clone() for name, tensor in encoder.state_dict().items()})
        return float(next(rest))

    made = settings(steps=options.pop("steps", 8))
    selection = Selection(score, **({"every": 1} | options))
    outcome = train(method, data_for("simcse"), made, seed=1, folder=folder, selection=selection)
    return outcome, seen, dict(method.encoder.state_dict())


def test_the_best_is_brought_back(bert, tmp_path):
    outcome, seen, end = trained(bert, tmp_path, [50, 1, 2, 9, 3, 9, 4, 5, 6])
    assert (outcome.steps, outcome.best_step, outcome.best_score, outcome.start_score) == (8, 3, 9.0, 50.0)
    assert unequal(end, seen[3]) == []  # the first of two equals
    assert unequal(end, seen[8]) != []


def test_the_start_is_for_comparison_only(bert, tmp_path):
    outcome, seen, end = trained(bert, tmp_path, [100, 3, 2, 1, 0, 0, 0, 0, 0])
    assert (outcome.best_step, outcome.start_score) == (1, 100.0)
    assert unequal(end, seen[1]) == []


def test_keep_last(bert, tmp_path):
    outcome, seen, end = trained(bert, tmp_path, [0, 9, 8, 7, 6, 5, 4, 3, 2], keep="last")
    assert (outcome.best_step, outcome.best_score) == (1, 9.0)
    assert unequal(end, seen[8]) == []


def test_scores_come_every_so_many_steps_and_at_the_end(bert, tmp_path):
    outcome, seen, _ = trained(bert, tmp_path, range(9), every=3)
    assert [line["step"] for line in journal(tmp_path) if "score" in line] == [0, 3, 6, 8]
    assert len(seen) == 4
    assert outcome.best_step == 8


PATIENCE = [
    # patience, scores from step 1 on, steps until it ends
    (1, [5, 4], 2),
    (2, [1, 2, 3, 3, 2], 5),  # an equal score is no new best
    (2, [5, 4, 6, 5, 7, 6, 5], 7),
    (3, [5, 6, 7, 8, 7, 7, 9, 1], 8),
]


@pytest.mark.parametrize(("patience", "scores", "steps"), PATIENCE)
def test_patience(patience, scores, steps, bert, tmp_path):
    outcome, _, _ = trained(bert, tmp_path, [100, *scores], patience=patience)
    assert outcome.steps == steps
    assert outcome.planned == 8


ENDURANCE = [
    (1, [1, 2, 3, 2], 4),
    (2, [5, 4, 9, 8, 10], 4),  # drops add up over the whole run
    (3, [5, 4, 5, 4, 5, 4], 6),
    (3, [5, 5, 5, 5, 5, 5, 5, 5], 8),  # as good is no drop
]


@pytest.mark.parametrize(("endurance", "scores", "steps"), ENDURANCE)
def test_endurance(endurance, scores, steps, bert, tmp_path):
    outcome, _, _ = trained(bert, tmp_path, [100, *scores], endurance=endurance)
    assert outcome.steps == steps


def test_scoring_sees_the_encoder_without_dropout(bert, tmp_path):
    vectors = []

    def score(encoder):
        vectors.extend([encoder.encode(["Two dogs run."]), encoder.encode(["Two dogs run."])])
        return 0.0

    method = build("simcse", bert, dropout=0.5)
    train(method, data_for("simcse"), settings(), seed=1, folder=tmp_path, selection=Selection(score, every=4))
    assert all((first == other).all() for first, other in zip(vectors[::2], vectors[1::2], strict=True))
    assert not method.training
    assert torch.isfinite(torch.tensor(vectors[-1])).all()
