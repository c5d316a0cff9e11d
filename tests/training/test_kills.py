"""kill -9 in the middle of a run, once for each method: it resumes and ends with the same bits. More in tests/faults."""

import pytest

from tests.training.killing import assert_as_if_never_killed, complete, finish, half_checkpoints, kill_until_done
from tests.training.small_runs import WHOLE, quick_first

STEPS = 10


@pytest.mark.parametrize(
    "case",
    quick_first(WHOLE, ("bootstrapped",)),
)
def test_a_killed_run_ends_with_the_same_bits(case, bert, tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    seconds = complete(lambda: finish(case, bert, whole, STEPS), whole)
    for run in kill_until_done(
        lambda folder: finish(case, bert, folder, STEPS), tmp_path, seconds, half_checkpoints, 1
    ):
        assert_as_if_never_killed(whole, run)
