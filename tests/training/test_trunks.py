"""A longer run continues a shorter one before its decay, and ends with the bits of one that did not."""

import pytest

from sentloom.progress import OutOfTime
from sentloom.training import Trunk, train
from sentloom.training.loop import FEWEST_STEPS
from tests.training.small_runs import build, data_for, journal, quick_first, settings, state, unequal
from tests.training.test_resume import Died

SCHEDULE = {"schedule": "warmup-stable-decay", "warmup_steps": 2, "decay": 0.25, "log_every": 1}


def run(case, bert, folder, steps, trunk=None, limit=float("inf"), **values):
    method = build(case, bert)
    made = settings(steps=steps, **SCHEDULE, **values)
    outcome = train(method, data_for(case), made, seed=5, folder=folder, trunk=trunk and Trunk(trunk, limit))
    return state(method), outcome


@pytest.mark.parametrize("case", quick_first(("simcse", "cross-lingual", "bootstrapped"), ("cross-lingual",)))
def test_a_longer_run_continues_a_shorter_one_with_the_same_bits(case, bert, tmp_path):
    whole, _ = run(case, bert, tmp_path / "whole", 12)
    short, _ = run(case, bert, tmp_path / "short", 4, tmp_path / "trunk")
    assert unequal(short, run(case, bert, tmp_path / "alone", 4)[0]) == []
    longer, outcome = run(case, bert, tmp_path / "longer", 12, tmp_path / "trunk")
    assert (outcome.continued_at, outcome.resumed_at, outcome.steps) == (3, 0, 12)  # 4 steps end with a decay of 1
    assert unequal(longer, whole) == []
    assert journal(tmp_path / "longer") == journal(tmp_path / "whole")


def test_a_run_does_not_start_beyond_its_own_decay(bert, tmp_path):
    run("simcse", bert, tmp_path / "long", 12, tmp_path / "trunk")
    short, outcome = run("simcse", bert, tmp_path / "short", 8, tmp_path / "trunk")
    assert outcome.continued_at == 0  # the trunk is at step 9, and 8 steps have 6 before their decay
    assert unequal(short, run("simcse", bert, tmp_path / "alone", 8)[0]) == []
    assert run("simcse", bert, tmp_path / "longer", 16, tmp_path / "trunk")[1].continued_at == 9  # still there


def test_a_run_out_of_time_goes_on_with_a_shorter_length(bert, tmp_path):
    with pytest.raises(OutOfTime) as late:
        run("simcse", bert, tmp_path / "slow", 400, tmp_path / "trunk", limit=0.0)
    assert late.value.step == FEWEST_STEPS == 2
    ended, outcome = run("simcse", bert, tmp_path / "shorter", 3, tmp_path / "trunk", limit=0.0)
    assert (outcome.steps, outcome.continued_at) == (3, 2)
    assert unequal(ended, run("simcse", bert, tmp_path / "alone", 3)[0]) == []


def test_a_continued_run_that_died_resumes_from_its_own_checkpoint(bert, tmp_path, monkeypatch):
    run("simcse", bert, tmp_path / "short", 4, tmp_path / "trunk")
    whole, _ = run("simcse", bert, tmp_path / "whole", 12)
    dying = iter(range(4))

    def checkpoint_then_die(self):
        self.checkpoint()
        if next(dying) == 3:
            raise Died

    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr("sentloom.training.loop._Run.checkpoint_if_due", checkpoint_then_die)
        run("simcse", bert, tmp_path / "died", 12, tmp_path / "trunk")
    again, outcome = run("simcse", bert, tmp_path / "died", 12, tmp_path / "trunk")
    assert (outcome.continued_at, outcome.resumed_at) == (3, 7)
    assert unequal(again, whole) == []
