"""Checkpoints: exact round trips, damage that is found, and what is kept."""

import json

import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.methods.bootstrapped import Bootstrapped, BootstrappedOptions
from sentloom.training import Selection, train
from sentloom.training.checkpoints import (
    Checkpoint,
    changing_state,
    frozen_hash,
    load_changing_state,
    newest_checkpoint,
    read_best,
    write_best,
    write_checkpoint,
)
from tests.encoder.small_models import build_model_folder
from tests.training.small_runs import CASES, build, data_for, nudge, pairs, run, settings, similarity, state, unequal

FILES = ("state.safetensors", "optimizer.safetensors", "checkpoint.json")


def checkpoint(step, best=None, value=0.0):
    tensors = {"w": torch.full((64,), step + value), "n": torch.tensor(step)}
    return Checkpoint(tensors, {"0.m": torch.ones(3, 2) * step}, {"step": step, "best": best, "scores": [[0, 0.1]]})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_the_changing_state_comes_back_bit_for_bit(case, bert, tmp_path):
    method = nudge(build(case, bert))
    tied = [p.data_ptr() for p in method.parameters()]
    write_checkpoint(tmp_path, Checkpoint(changing_state(method), {}, {"step": 3, "floats": [0.1, 1e-300]}))
    other = build(case, bert, seed=8)
    if not any(name.startswith(("guide", "start")) for name, _ in other.named_parameters()):
        assert unequal(state(method), state(other)) != []
    checkpoint = newest_checkpoint(tmp_path, pytest.fail)
    assert checkpoint.facts["floats"] == [0.1, 1e-300]
    load_changing_state(other, checkpoint.state)
    assert unequal(state(method), state(other)) == []
    assert [p.data_ptr() for p in method.parameters()] == tied  # nothing was replaced
    frozen = {name for name in state(method) if name.split(".")[0] in method.frozen}
    assert not frozen & checkpoint.state.keys()


def test_the_frozen_hash_is_of_every_bit(bert):
    method = build("self-guided", bert)
    before = frozen_hash(method)
    assert frozen_hash(build("self-guided", bert, seed=9)) == before
    with torch.no_grad():
        weight = next(method.guide.parameters()).view(-1)
        weight[5] = torch.nextafter(weight[5], torch.tensor(10.0))
    assert frozen_hash(method) != before


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def flip(path):
    """One bit, in the last number of a tensor or in the facts."""
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip, empty, lambda path: path.unlink()])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_checkpoint_is_passed_over(file, damage, tmp_path):
    for step in (10, 20):
        write_checkpoint(tmp_path, checkpoint(step))
    damage(tmp_path / "step-00000020" / file)
    told = []
    newest = newest_checkpoint(tmp_path, told.append)
    assert newest.facts["step"] == 10
    assert torch.equal(newest.state["w"], torch.full((64,), 10.0))
    assert len(told) == 1
    assert told[0].startswith("step-00000020 is damaged")
    assert "going back" in told[0]


def test_after_damage_the_run_goes_on_and_the_damaged_one_goes(tmp_path):
    for step in (10, 20):
        write_checkpoint(tmp_path, checkpoint(step))
    (tmp_path / "step-00000020/checkpoint.json").unlink()
    write_checkpoint(tmp_path, checkpoint(15))
    assert names(tmp_path) == ["step-00000010", "step-00000015"]
    assert newest_checkpoint(tmp_path, pytest.fail).facts["step"] == 15


def test_all_damaged_is_none(tmp_path):
    assert newest_checkpoint(tmp_path / "none", pytest.fail) is None
    write_checkpoint(tmp_path, checkpoint(1))
    flip(tmp_path / "step-00000001/state.safetensors")
    told = []
    assert newest_checkpoint(tmp_path, told.append) is None
    assert len(told) == 1


def best_at(folder, step):
    return {"step": step, "score": 1.0, "weights": write_best(folder, step, {"w": torch.full((9,), float(step))})}


@pytest.mark.parametrize("damage", [truncate, flip, lambda path: path.unlink()])
def test_a_damaged_best_makes_its_checkpoints_damaged(damage, tmp_path):
    write_checkpoint(tmp_path, checkpoint(10, best_at(tmp_path, 5)))
    write_checkpoint(tmp_path, checkpoint(20, best_at(tmp_path, 15)))
    damage(tmp_path / "best-00000015.safetensors")
    told = []
    newest = newest_checkpoint(tmp_path, told.append)
    assert newest.facts["step"] == 10
    assert torch.equal(read_best(tmp_path, newest.facts["best"]["weights"])["w"], torch.full((9,), 5.0))
    assert len(told) == 1


def test_two_are_kept_with_the_bests_that_they_name(tmp_path):
    best = best_at(tmp_path, 5)
    for step in (10, 20, 30):
        write_checkpoint(tmp_path, checkpoint(step, best))
    assert names(tmp_path) == ["best-00000005.safetensors", "step-00000020", "step-00000030"]
    write_checkpoint(tmp_path, checkpoint(40, best_at(tmp_path, 35)))
    # the checkpoint before the newest still needs the first best
    assert names(tmp_path) == [
        "best-00000005.safetensors",
        "best-00000035.safetensors",
        "step-00000030",
        "step-00000040",
    ]
    write_checkpoint(tmp_path, checkpoint(50, best_at(tmp_path, 45)))
    assert names(tmp_path) == [
        "best-00000035.safetensors",
        "best-00000045.safetensors",
        "step-00000040",
        "step-00000050",
    ]


def test_leftovers_of_kills_are_no_checkpoints_and_are_removed(tmp_path):
    write_checkpoint(tmp_path, checkpoint(10))
    (tmp_path / ".step-00000020.abc").mkdir()
    (tmp_path / ".step-00000020.abc/state.safetensors").write_bytes(b"half")
    (tmp_path / ".best-00000020.safetensors.x").write_bytes(b"half")
    (tmp_path / "best-00000019.safetensors").write_bytes(b"of a step that was not reached again")
    assert newest_checkpoint(tmp_path, pytest.fail).facts["step"] == 10
    write_checkpoint(tmp_path, checkpoint(20))
    assert names(tmp_path) == ["step-00000010", "step-00000020"]


def test_a_damaged_newest_checkpoint_costs_steps_but_no_bits(bert, tmp_path):
    whole = run("bootstrapped", bert, tmp_path / "whole", similarity)
    run("bootstrapped", bert, tmp_path / "damaged", similarity, checkpoint_seconds=0)
    places = sorted((tmp_path / "damaged/checkpoints").glob("step-*"))
    assert [place.name for place in places] == ["step-00000006", "step-00000007"]
    flip(places[1] / "optimizer.safetensors")
    told = []
    method = build("bootstrapped", bert)
    selection = Selection(similarity, every=2)
    folder = tmp_path / "damaged"
    outcome = train(
        method, data_for("bootstrapped"), settings(), seed=5, folder=folder, selection=selection, log=told.append
    )
    assert outcome.resumed_at == 6
    assert unequal(state(method), state(whole[0])) == []
    assert len(told) == 1
    assert "step-00000007 is damaged (optimizer.safetensors is not what was written)" in told[0]


@pytest.mark.parametrize("pooling", ["mean", pytest.param("decoder-first", marks=pytest.mark.long)])
def test_the_best_of_a_model_with_tied_tensors(pooling, tmp_path):
    """T5's embeddings stand under several names, which the file format refuses."""
    folder = build_model_folder("t5", tmp_path / "t5")
    method = Bootstrapped(Encoder.load(folder, pooling=pooling), BootstrappedOptions(predictor_width=1))
    kept = {}

    def score(encoder):
        value = float(len(kept) == 1)  # the first after the untrained one
        kept[len(kept)] = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
        return value

    outcome = train(method, pairs(), settings(steps=3), seed=1, folder=tmp_path, selection=Selection(score, every=1))
    assert outcome.best_step == 1
    assert unequal(kept[1], dict(method.encoder.state_dict())) == []
    assert unequal(kept[3], dict(method.encoder.state_dict())) != []


def test_facts_are_plain_json(bert, tmp_path):
    run("self-guided", bert, tmp_path, similarity, checkpoint_seconds=0, optimizer="adafactor")
    facts = json.loads((tmp_path / "checkpoints/step-00000007/checkpoint.json").read_text())
    assert facts["step"] == 7
    assert facts["optimizer"]["0.step"] == 7
    assert set(facts["sha256"]) == {"state.safetensors", "optimizer.safetensors", "checkpoint.json"}
    here = {"torch": torch.__version__, "threads": 1, "device": "cpu", "processes": 1, "precision": "no"}
    assert facts["machine"] == here
    assert [step for step, _ in facts["scores"]] == [0, 2, 4, 6]


@pytest.mark.parametrize("content", ["[]", "null", '{"step": 9}', '{"sha256": 3}'])
def test_facts_of_another_form_or_changed_are_damage(content, tmp_path):
    for step in (3, 6):
        write_checkpoint(tmp_path, Checkpoint({"a": torch.ones(2)}, {}, {"step": step}))
    (tmp_path / "step-00000006/checkpoint.json").write_text(content)
    told = []
    assert newest_checkpoint(tmp_path, told.append).facts["step"] == 3
    assert "step-00000006 is damaged" in told[0]
    write_checkpoint(tmp_path, Checkpoint({"a": torch.ones(2)}, {}, {"step": 9}))
    assert names(tmp_path) == ["step-00000003", "step-00000009"]  # the damaged one is no longer in the way


def test_a_changed_number_in_the_facts_is_found(tmp_path):
    write_checkpoint(tmp_path, Checkpoint({"a": torch.ones(2)}, {}, {"step": 200}))
    path = tmp_path / "step-00000200/checkpoint.json"
    path.write_text(path.read_text().replace("200", "900"))
    told = []
    assert newest_checkpoint(tmp_path, told.append) is None
    assert "checkpoint.json is not what was written" in told[0]
