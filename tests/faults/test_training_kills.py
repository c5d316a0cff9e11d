"""Twenty kill -9 of one run for every method, some of them in the middle of a save: the end has the same bits."""

import time

import pytest
import torch

from tests.encoder.small_models import build_model_folder
from tests.training.killing import assert_as_if_never_killed, finish, kill_until_done
from tests.training.small_runs import WHOLE

FAULT = "1. kill -9 while training"

KILLS, STEPS = 20, 150


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.mark.long
@pytest.mark.parametrize("case", WHOLE)
def test_twenty_kills(case, bert, tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_SCRATCH", str(tmp_path / "scratch"))
    torch.set_num_threads(1)
    begun = time.monotonic()
    finish(case, bert, tmp_path / "whole", STEPS)
    saves = kill_until_done(case, bert, tmp_path / "killed", STEPS, KILLS, time.monotonic() - begun)
    assert saves >= KILLS / 2
    assert_as_if_never_killed(tmp_path / "whole", tmp_path / "killed")
