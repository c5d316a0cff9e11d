"""Health: numbers that are none stop a run before they spoil it; collapse is told, good runs are left alone."""

import json
import math

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batches
from sentloom.errors import TrainingStopped
from sentloom.methods.simcse import Simcse
from sentloom.training import Selection, train
from sentloom.training.health import Gauges, alarms, best_of, gauge, overflowing
from tests.training.small_runs import WHOLE, build, data_for, journal, settings, similarity, state, unequal


def slow_gauges(vectors):
    """The definitions, pair by pair."""
    x = [np.array(v, float) / np.linalg.norm(v) for v in vectors]
    n, d = len(x), len(x[0])
    pairs = [(i, j) for i in range(n) for j in range(i)]
    mean = sum(x) / n
    # singular values from the eigenvalues of the centred vectors' products
    centred = np.array([v - mean for v in x])
    singular = [math.sqrt(max(0.0, value)) for value in np.linalg.eigvalsh(centred.T @ centred)]
    shares = [value / sum(singular) for value in singular]
    entropy = -sum(share * math.log(share) for share in shares if share > 1e-15)
    spread = [math.sqrt(sum((v[k] - mean[k]) ** 2 for v in x) / n) for k in range(d)]
    return Gauges(
        mean_cosine=sum(float(x[i] @ x[j]) for i, j in pairs) / len(pairs),
        effective_rank=math.exp(entropy),
        deviation=sum(spread) / d * math.sqrt(d),
        uniformity=math.log(sum(math.exp(-2 * float(np.sum((x[i] - x[j]) ** 2))) for i, j in pairs) / len(pairs)),
    )


@pytest.mark.parametrize("shape", [(2, 3), (20, 5), (6, 16)])
def test_gauges_against_their_definitions(shape):
    vectors = np.random.default_rng(0).normal(size=shape) + 0.5
    gauges, expected = gauge(vectors.astype(np.float32)), slow_gauges(vectors)
    assert gauges.to_dict() == pytest.approx(expected.to_dict(), rel=1e-5)


def test_gauges_of_equal_vectors():
    gauges = gauge(np.tile(np.float32([3, 4, 0]), (10, 1)))
    assert gauges.mean_cosine == pytest.approx(1)
    assert gauges.deviation == pytest.approx(0, abs=1e-6)
    assert gauges.uniformity == pytest.approx(0, abs=1e-6)
    assert gauges.effective_rank < 2


def test_gauges_of_orthogonal_vectors():
    """n unit vectors at right angles: centred, they span n - 1 directions alike; squared distances are 2."""
    n = 8
    gauges = gauge(5 * np.eye(n, dtype=np.float32))
    assert gauges.mean_cosine == pytest.approx(0)
    assert gauges.effective_rank == pytest.approx(n - 1)
    assert gauges.uniformity == pytest.approx(-4)
    assert gauges.deviation == pytest.approx(math.sqrt(n) * math.sqrt(1 / n - 1 / n**2))


def test_gauges_of_two_opposite_directions():
    gauges = gauge(np.float32([[1, 0], [-1, 0]] * 4))
    assert gauges.effective_rank == pytest.approx(1)
    assert gauges.mean_cosine == pytest.approx((12 * 1 - 16 * 1) / 28)


def test_zero_vectors_have_gauges():
    assert all(math.isfinite(value) for value in gauge(np.zeros((4, 3), np.float32)).to_dict().values())


GOOD = Gauges(mean_cosine=0.5, effective_rank=40.0, deviation=0.7, uniformity=-2.0)


def changed(**values):
    return Gauges(**(GOOD.to_dict() | values))


def test_when_there_is_an_alarm():
    assert alarms(GOOD, GOOD) == []
    assert alarms(changed(mean_cosine=0.985, effective_rank=4.1), GOOD) == []
    assert alarms(changed(mean_cosine=0.995), GOOD) == ["mean cosine of distinct sentences 0.9950 (at best 0.5000)"]
    assert alarms(changed(effective_rank=3.9), GOOD) == ["effective rank 3.9 (at best 40.0)"]
    flat = changed(mean_cosine=0.995, effective_rank=1.5)
    assert alarms(flat, flat) == []  # so from the start
    assert len(alarms(flat, GOOD)) == 2


def test_a_base_that_is_narrow_from_the_start_collapses_when_it_loses_what_spread_it_had():
    """Like a raw RoBERTa: spread 0.004, uniformity about -4 times and deviation about the root of it."""

    def narrow(spread):
        return changed(mean_cosine=1 - spread, uniformity=-4 * spread, deviation=spread**0.5)

    assert alarms(narrow(0.004), narrow(0.004)) == []
    assert alarms(narrow(0.0005), narrow(0.004)) == []
    assert len(alarms(narrow(0.0003), narrow(0.004))) == 3
    better = best_of(narrow(0.004), narrow(0.5))
    assert better == best_of(narrow(0.5), narrow(0.004)) == narrow(0.5)
    assert len(alarms(narrow(0.004), better)) == 3  # it was spread out for a while


class Collapsing(Simcse):
    """Pulls all vectors together."""

    def loss(self, embeddings, batch):
        z = torch.nn.functional.normalize(embeddings[0], dim=-1)
        return 1 - (z @ z.T).mean()


def test_a_collapse_is_told_once_and_written_down(bert, tmp_path):
    told = []
    start = build("simcse", bert)
    method = Collapsing(start.encoder, start.options)
    made = settings(steps=60, log_every=10, learning_rate=3e-3)
    outcome = train(method, data_for("simcse"), made, seed=1, folder=tmp_path, log=told.append)
    assert len(told) == 1
    assert "collapse alarm at step" in told[0]
    assert outcome.alarms
    assert outcome.alarms[0].split(": ", 1)[1] in told[0]
    lines = [line for line in journal(tmp_path) if "alarm" in line]
    assert [f"step {line['step']}: {line['alarm']}" for line in lines] == list(outcome.alarms)


@pytest.mark.long
def test_a_collapse_is_told_within_200_steps_however_seldom_the_journal_is_written(bert, tmp_path):
    start = build("simcse", bert)
    method = Collapsing(start.encoder, start.options)
    made = settings(steps=205, log_every=1000, learning_rate=3e-3, batch=2)
    outcome = train(method, data_for("simcse"), made, seed=1, folder=tmp_path)
    assert outcome.alarms[0].startswith("step 200: mean cosine")


@pytest.mark.parametrize("case", WHOLE)
def test_healthy_runs_have_no_alarm(case, bert, tmp_path):
    made = settings(steps=12, log_every=2)
    outcome = train(build(case, bert), data_for(case), made, seed=1, folder=tmp_path, log=pytest.fail)
    assert outcome.alarms == ()
    assert not (tmp_path / "stopped.json").exists()


def spoiling(part, step):
    """A method whose weight or loss is no number from a step on."""
    base = type(part)

    class Spoilt(base):
        def after_step(self):
            super().after_step()
            self.steps = getattr(self, "steps", 0) + 1

        def loss(self, embeddings, batch):
            loss = super().loss(embeddings, batch)
            return loss * float("nan") if getattr(self, "steps", 0) == step else loss

    part.__class__ = Spoilt
    return part


def test_a_loss_that_is_no_number_stops_before_the_weights_change(bert, tmp_path):
    method, data = build("self-guided", bert), data_for("self-guided")
    spoiling(method, 5)
    made = settings(checkpoint_seconds=0, accumulate=2)
    seen = {}
    after = method.after_step

    def remember():
        after()
        seen.update(state(method))

    method.after_step = remember
    with pytest.raises(TrainingStopped) as stopped:
        train(method, data, made, seed=5, folder=tmp_path)
    assert unequal(seen, state(method)) == []
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000004", "step-00000005"]
    batches = Batches(data, 8, 5)
    rows = [*batches.rows(10), *batches.rows(11)]
    facts = json.loads((tmp_path / "stopped.json").read_text())
    assert facts["step"] == 5
    assert facts["loss"] == "nan"
    assert facts["places"] == [f"data.tsv, line {row + 2}" for row in rows]
    assert facts["text"] == data.take(rows)["text"]
    text = str(stopped.value)
    assert text.startswith(f"step 6, rows data.tsv, line {rows[0] + 2}, ")
    assert "the loss is nan" in text
    assert "stopped.json" in text
    assert stopped.value.exit_code == 2


def test_called_again_it_goes_on_from_the_last_good_checkpoint(bert, tmp_path):
    method = spoiling(build("simcse", bert), 5)
    with pytest.raises(TrainingStopped):
        train(method, data_for("simcse"), settings(checkpoint_seconds=0), seed=5, folder=tmp_path)
    again = build("simcse", bert)
    outcome = train(again, data_for("simcse"), settings(), seed=5, folder=tmp_path)
    assert outcome.resumed_at == 5
    whole = build("simcse", bert)
    train(whole, data_for("simcse"), settings(), seed=5, folder=tmp_path / "whole")
    assert unequal(state(again), state(whole)) == []


@pytest.mark.parametrize("case", ["simcse", "bootstrapped", "mlm"])
def test_a_weight_that_is_no_number_stops(case, bert, tmp_path):
    method = build(case, bert)

    def spoil():
        with torch.no_grad():
            method.encoder.backbone.model.encoder.layer[1].output.dense.weight[0, 0] = torch.nan

    method.after_step = spoil
    with pytest.raises(TrainingStopped, match=r"step 2, rows data\.tsv, line"):
        train(method, data_for(case), settings(), seed=5, folder=tmp_path)
    assert (tmp_path / "stopped.json").is_file()


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (1, r"step 1, rows data\.tsv, line .*(vectors|weights) that are not finite"),
        (8, r"step 2, rows data\.tsv, line .*the loss is nan"),
    ],
)
def test_weights_that_overflow_are_found_by_the_gauges_or_the_next_loss(steps, found, bert, tmp_path):
    """A rate beyond reason: the gradients are finite, the weights behind the step are not usable. Also in the last."""
    method = build("simcse", bert)
    made = settings(steps=steps, log_every=1, learning_rate=1e30)
    with pytest.raises(TrainingStopped, match=found):
        train(method, data_for("simcse"), made, seed=5, folder=tmp_path)
    assert json.loads((tmp_path / "stopped.json").read_text())["step"] == 1


def test_which_tensors_overflow():
    tensors = {
        "good": torch.tensor([[1e18, -3.0]]),
        "empty": torch.zeros(0),
        "counts": torch.tensor([2**62]),
        "nan": torch.tensor([0.0, torch.nan]),
        "infinite": torch.tensor(-torch.inf),
        "large": torch.tensor([1e20, 0.0]),  # its square is beyond float32
    }
    assert overflowing(tensors) == ["nan", "infinite", "large"]


@pytest.mark.parametrize("value", [float("nan"), 1e30])
def test_spoilt_weights_are_in_no_checkpoint(value, bert, tmp_path):
    """Weights that a step spoils, where neither its loss nor its gradient shows it: the checkpoint before it stays."""
    method, data = build("simcse", bert), data_for("simcse")
    unused = method.encoder.backbone.model.get_input_embeddings().weight
    after = method.after_step
    steps = iter(range(1, 9))

    def spoil():
        after()
        if next(steps) == 4:
            with torch.no_grad():
                unused[0, 0] = value  # of the padding token, which no packed sentence has

    method.after_step = spoil
    with pytest.raises(TrainingStopped, match=r"step 4, rows data\.tsv, line .* weights are not finite, or overflow"):
        train(method, data, settings(checkpoint_seconds=0), seed=5, folder=tmp_path)
    facts = json.loads((tmp_path / "stopped.json").read_text())
    assert facts["text"] == data.take(Batches(data, 8, 5).rows(3))["text"]
    assert "encoder.backbone.model.embeddings.word_embeddings.weight" in facts["weights"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000002", "step-00000003"]
    again = build("simcse", bert)
    assert train(again, data, settings(), seed=5, folder=tmp_path).resumed_at == 3
    assert overflowing(state(again)) == []


@pytest.mark.parametrize("snapshots", [None, 1])
def test_spoilt_weights_are_not_what_a_run_ends_with(snapshots, bert, tmp_path):
    method = build("simcse", bert)

    def spoil():
        with torch.no_grad():
            method.encoder.backbone.model.get_input_embeddings().weight[0, 0] = torch.nan

    method.after_step = spoil
    with pytest.raises(TrainingStopped, match="weights are not finite"):
        train(method, data_for("simcse"), settings(steps=1, snapshots=snapshots), seed=5, folder=tmp_path)
    saved = [path.name for path in (tmp_path / "snapshots").glob("*")]
    assert saved == (["step-00000000"] if snapshots else [])


def test_a_base_that_gives_no_numbers_is_refused(bert, tmp_path):
    method = build("simcse", bert)
    with torch.no_grad():
        next(method.encoder.parameters())[:] = torch.inf
    with pytest.raises(TrainingStopped, match="step 0"):
        train(method, data_for("simcse"), settings(), seed=5, folder=tmp_path)


def test_a_score_that_is_no_number_stops(bert, tmp_path):
    scores = iter([1.0, float("nan"), 2.0])
    selection = Selection(lambda encoder: next(scores), every=2)
    with pytest.raises(TrainingStopped, match="step 2: a score that is not a number"):
        train(build("simcse", bert), data_for("simcse"), settings(), seed=5, folder=tmp_path, selection=selection)


def test_health_costs_no_bits(bert, tmp_path):
    """Logging and scoring draw nothing that a step would have drawn."""
    ends = []
    for number, (log_every, every) in enumerate([(1, 1), (100, 100)]):
        method = build("simcse", bert)
        selection = Selection(similarity, every=every, keep="last")
        made = settings(log_every=log_every)
        train(method, data_for("simcse"), made, seed=5, folder=tmp_path / str(number), selection=selection)
        ends.append(state(method))
    assert unequal(*ends) == []
