"""Trackers: what the journal says goes to TensorBoard, a run for every stage; a missing package is said."""

import builtins

import pytest

from sentloom.engine import runner
from sentloom.engine.runner import prepare, start_accelerator
from sentloom.errors import MissingPart
from sentloom.training.health import read_journal


def test_losses_go_to_tensorboard(kitchen):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    stages = [{"method": "mlm"}, {"method": "simcse"}]
    plan = kitchen.plan(*stages, trackers=["tensorboard"])
    out = kitchen.folder / "out"
    (runner,) = prepare([plan], out, start_accelerator(plan.trackers, out), lambda text: None)
    result = runner.run()[0]
    for stage in result.stages:
        name = f"{stage['stage']}-{stage['key']}"
        events = EventAccumulator(str(out / name))
        events.Reload()
        lines = [line for line in read_journal(out / "stages" / name) if "loss" in line]
        assert [line["step"] for line in lines] == [2, 4]
        tracked = [(event.step, event.value) for event in events.Scalars("loss")]
        assert tracked == [(line["step"], pytest.approx(line["loss"])) for line in lines]


def test_a_missing_tracker_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "get_available_trackers", builtins.list)
    with pytest.raises(MissingPart, match=r"tensorboard wandb is not installed(.|\n)*pip install tensorboard wandb"):
        start_accelerator(("tensorboard", "wandb"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert start_accelerator((), tmp_path).num_processes == 1
