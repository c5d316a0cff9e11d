"""One update of the loop by hand: accumulated batches, clipping, the rate, weight decay and the moving average."""

import pytest
import torch

from sentloom.data.batches import Batches
from sentloom.training import train
from sentloom.training.health import read_journal
from sentloom.training.optimizers import learning
from tests.training.small_runs import build, data_for, journal, run, settings, whole_loss

EPS = 0.1  # large beside the gradients: the size of an update then tells the size of the gradient


@pytest.mark.parametrize("case", ["simcse", "bootstrapped", "mlm"])
@pytest.mark.parametrize("clip", [None, 0.02])
def test_one_update_by_hand(case, clip, bert, tmp_path):
    method, data = build(case, bert, dropout=0.0), data_for(case)
    batches = Batches(data, 8, seed=4)
    losses = [whole_loss(method, batches.batch(number)) for number in (0, 1)]
    (sum(losses) / 2).backward()
    before = {name: p.detach().clone() for name, p in learning(method).items()}
    gradients = {name: p.grad.clone() for name, p in learning(method).items() if p.grad is not None}
    norm = torch.cat([g.flatten() for g in gradients.values()]).norm()
    scale = min(1.0, clip / norm.item()) if clip else 1.0
    assert (scale < 1) == bool(clip)

    trained = build(case, bert, dropout=0.0)
    start = {name: p.detach().clone() for name, p in trained.named_parameters()}
    made = settings(
        steps=1, accumulate=2, clip=clip, learning_rate=0.05, weight_decay=0.2, eps=EPS, chunk=3, optimizer="adamw"
    )
    train(trained, data, made, seed=4, folder=tmp_path)
    line = read_journal(tmp_path)[-1]
    assert line["gradient_norm"] == pytest.approx(norm.item(), rel=1e-4)
    assert line["loss"] == pytest.approx(sum(loss.item() for loss in losses) / 2, rel=1e-5)
    assert line["learning_rate"] == 0.05
    for name, parameter in learning(trained).items():
        expected = before[name]
        if name in gradients:
            g = gradients[name] * scale
            decay = 1 - 0.05 * 0.2 if parameter.dim() > 1 else 1.0
            expected = expected * decay - 0.05 * g / (g.abs() + EPS)
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-4, atol=1e-6)
    if case == "bootstrapped":
        for (name, xi), theta in zip(trained.target.named_parameters(), trained.encoder.parameters(), strict=True):
            expected = 0.9 * start[f"target.{name}"] + 0.1 * theta.detach()
            torch.testing.assert_close(xi.detach(), expected)


def test_batches_of_a_run_go_on_over_epochs(bert, tmp_path):
    """32 rows, 8 a batch, 2 batches a step: 5 steps are two epochs and a half, every row as often as it should."""
    method, seen = build("simcse", bert), []
    embed = method.embed

    def remember(batch):
        if not torch.is_grad_enabled():  # the first pass of the cache
            seen.extend(batch.rows.tolist())
        return embed(batch)

    method.embed = remember
    train(method, data_for("simcse"), settings(steps=5, accumulate=2, chunk=4), seed=4, folder=tmp_path)
    assert len(seen) == 80
    for epoch in (seen[:32], seen[32:64]):
        assert sorted(epoch) == list(range(32))
    assert len(set(seen[64:])) == 16
    assert seen[:32] != seen[32:64]


def test_too_little_data_is_refused(bert, tmp_path):
    from sentloom.errors import InputError

    with pytest.raises(InputError, match=r"32 rows are fewer than one batch of 64"):
        train(build("simcse", bert), data_for("simcse"), settings(batch=64), seed=1, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_longer_run_with_a_stable_rate_goes_the_way_of_a_shorter_one_until_its_decay(bert, tmp_path):
    """The losses are equal, step by step: what a shorter run did need not be done again."""
    options = {"schedule": "warmup-stable-decay", "warmup_steps": 2, "decay": 0.5, "log_every": 1}
    short, long = (run("supervised", bert, tmp_path / f"{steps}", steps=steps, **options) for steps in (6, 12))
    assert (short[1].steps, long[1].steps) == (6, 12)
    losses = [[line["loss"] for line in journal(tmp_path / name) if "loss" in line] for name in ("6", "12")]
    assert losses[0][:4] == losses[1][:4]  # the fourth is computed before the first smaller step
    assert losses[0][5] != losses[1][5]
