"""kill -9 in the middle of a run, once a method: it goes on and ends with the same bits. Many kills: tests/faults."""

import time

import pytest

from tests.training.killing import assert_as_if_never_killed, finish, kill_until_done
from tests.training.small_runs import WHOLE

STEPS = 10


@pytest.mark.parametrize("case", WHOLE)
def test_a_killed_run_ends_with_the_same_bits(case, bert, tmp_path):
    begun = time.monotonic()
    finish(case, bert, tmp_path / "whole", STEPS)
    kill_until_done(case, bert, tmp_path / "killed", STEPS, 1, time.monotonic() - begun)
    assert_as_if_never_killed(tmp_path / "whole", tmp_path / "killed")
