"""The journal: a line a record, cut short by a kill, and what a line says against what was done."""

import json
import math

import numpy as np
import pytest

from sentloom.data.batches import Batches
from sentloom.training import train
from sentloom.training.health import Journal, gauge, read_journal
from tests.training.small_runs import build, data_for, pairs, settings


def test_lines_behind_the_step_are_dropped(accelerator, tmp_path):
    journal = Journal(tmp_path / "run", accelerator, -1)
    for step in range(5):
        journal.write(step, loss=step / 2, words="a")
    with (tmp_path / "run/log.jsonl").open("a") as file:
        file.write('{"step": 5, "lo')  # a kill in the middle of a line
    assert [line["step"] for line in read_journal(tmp_path / "run")] == [0, 1, 2, 3, 4]
    again = Journal(tmp_path / "run", accelerator, 3)
    assert read_journal(tmp_path / "run")[-1] == {"step": 3, "loss": 1.5, "words": "a"}
    again.write(4, loss=9)
    lines = (tmp_path / "run/log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1, 2, 3, 4]
    assert read_journal(tmp_path / "none") == []


def test_what_a_line_says(bert, tmp_path):
    """Learning rates as the schedule says, the mean loss since the last line, masked pairs, gauges of the vectors."""
    made = settings(steps=8, log_every=3, schedule="linear", warmup=0.5, learning_rate=1e-3)
    method, data = build("contrastive-bt", bert), pairs()
    texts = [*data.column("anchor").to_pylist(), *data.column("positive").to_pylist()]
    start = gauge(method.encoder.encode(list(dict.fromkeys(texts))))
    train(method, data, made, seed=2, folder=tmp_path)
    lines = read_journal(tmp_path)
    assert [line["step"] for line in lines] == [0, 3, 6, 8]
    assert {name: lines[0][name] for name in start.to_dict()} == pytest.approx(start.to_dict(), rel=1e-4)
    # the update that ends in step s is the (s - 1)th from 0: rising over 4, then falling over 4
    assert [line["learning_rate"] for line in lines[1:]] == pytest.approx([1e-3 * 2 / 4, 1e-3 * 3 / 4, 1e-3 * 1 / 4])
    batches = Batches(data, 8, 2)
    masked = np.cumsum([int({1, 5} <= set(batches.rows(step).tolist())) for step in range(8)])  # rows with equal texts
    assert masked[-1] > 0
    assert [line["masked"] for line in lines[1:]] == [masked[2], masked[5], masked[7]]
    end = gauge(method.encoder.encode(list(dict.fromkeys(texts))))
    assert lines[-1]["effective_rank"] == pytest.approx(end.effective_rank, rel=1e-4)
    seconds = [line["seconds"] for line in lines[1:]]
    assert seconds == sorted(seconds)


def test_the_loss_of_a_line_is_the_mean_of_its_steps(bert, tmp_path):
    def losses(log_every, name):
        train(
            build("simcse", bert),
            data_for("simcse"),
            settings(log_every=log_every, clip=0.1),
            seed=1,
            folder=tmp_path / name,
        )
        return [line["loss"] for line in read_journal(tmp_path / name)[1:]]

    each = losses(1, "each")
    assert len(each) == 8
    assert losses(3, "three") == pytest.approx([np.mean(each[:3]), np.mean(each[3:6]), np.mean(each[6:])])


@pytest.mark.parametrize(
    ("case", "start", "tau"),
    [
        ("cross-lingual", 0.3, lambda method: math.exp(-method.theta.item())),
        ("cross-lingual dual", 1.0, lambda method: math.exp(-method.theta.item())),
    ],
)
def test_a_learned_temperature_is_logged_and_a_fixed_one_is_not(case, start, tau, bert, tmp_path):
    method = build(case, bert)
    train(method, data_for(case), settings(log_every=3), seed=1, folder=tmp_path / "learned")
    told = [line["temperature"] for line in read_journal(tmp_path / "learned")]
    assert len(told) == 4
    assert told[0] == pytest.approx(start)
    assert told[-1] == pytest.approx(tau(method))
    assert len(set(told)) == 4  # it moves
    fixed = build(case, bert, learn_temperature=False)
    train(fixed, data_for(case), settings(steps=1), seed=1, folder=tmp_path / "fixed")
    assert not any("temperature" in line for line in read_journal(tmp_path / "fixed"))


def test_the_rate_of_a_step_moves_the_weights(bert, tmp_path):
    """A warm-up's first step has the rate 0: nothing moves but what is no parameter."""
    from tests.training.small_runs import state, unequal

    method = build("simcse", bert)
    before = state(method)
    made = settings(steps=1, schedule="linear", warmup=1.0, weight_decay=0.1)
    train(method, data_for("simcse"), made, seed=1, folder=tmp_path)
    assert unequal(before, state(method)) == []
