"""A run that was stopped and called again ends with the bits of one that was not."""

import signal

import pytest
import torch

from sentloom.training.loop import train
from tests.training.small_runs import (
    CASES,
    WHOLE,
    build,
    data_for,
    journal,
    plain,
    quick_first,
    run,
    settings,
    similarity,
    state,
    unequal,
)

# The objectives of a method share their state: the one that draws layers stands for the others.
ALIKE = (
    *("self-guided opt1", "self-guided sg", "self-guided cut", "cross-lingual shared", "supervised twice"),
    "contrastive cut",
)
# A queue is what a resumed run could lose; test_kills.py has the moving average.
QUICK = ("cross-lingual",)
STATES = [pytest.param(case, marks=() if case in QUICK else pytest.mark.long) for case in CASES if case not in ALIKE]


class Died(Exception):
    pass


def dying_at(*calls):
    """A score that dies in some of its calls, counted over all runs."""
    count = 0

    def score(encoder):
        nonlocal count
        count += 1
        if count in calls:
            raise Died
        return similarity(encoder)

    return score


def assert_same(one, other, folders):
    assert unequal(state(one[0]), state(other[0])) == []
    assert plain(one[1]) == plain(other[1])
    assert journal(folders[0]) == journal(folders[1])


@pytest.mark.parametrize("case", STATES)
def test_a_run_that_died_twice_ends_with_the_same_bits(case, bert, tmp_path):
    whole = run(case, bert, tmp_path / "whole", similarity, chunk=3)
    assert whole[1].resumed_at == 0
    assert len(journal(tmp_path / "whole")) == 1 + 5 + 3  # the start; scores at 0, 2, 4, 6, 8; lines at 3, 6, 8
    score = dying_at(3, 5)  # in steps 4 and, once more, 6
    for _ in range(2):
        with pytest.raises(Died):
            run(case, bert, tmp_path / "died", score, chunk=3, checkpoint_seconds=0)
    died = run(case, bert, tmp_path / "died", score, chunk=3, checkpoint_seconds=0)
    assert died[1].resumed_at == 5
    assert_same(whole, died, (tmp_path / "whole", tmp_path / "died"))


@pytest.mark.parametrize("optimizer", ["adam", "adafactor"])
@pytest.mark.long
def test_every_optimiser_goes_on(optimizer, bert, tmp_path):
    options = {"optimizer": optimizer, "schedule": "cosine", "warmup": 0.3, "clip": 0.5, "weight_decay": 0.1}
    options |= {"accumulate": 2}
    whole = run("bootstrapped", bert, tmp_path / "whole", similarity, **options)
    score = dying_at(4)
    with pytest.raises(Died):
        run("bootstrapped", bert, tmp_path / "died", score, checkpoint_seconds=0, **options)
    died = run("bootstrapped", bert, tmp_path / "died", score, checkpoint_seconds=0, **options)
    assert_same(whole, died, (tmp_path / "whole", tmp_path / "died"))


def pressing(number, times=1):
    """A score during which Ctrl-C is pressed."""
    count = 0

    def score(encoder):
        nonlocal count
        count += 1
        if count == number:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return similarity(encoder)

    return score


@pytest.mark.parametrize(
    "number", [pytest.param(2, marks=pytest.mark.long), 4, pytest.param(5, marks=pytest.mark.long)]
)  # in steps 2, 6 and 8, the last
def test_ctrl_c_ends_at_a_steps_end_with_a_checkpoint(number, bert, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    whole = run("simcse", bert, tmp_path / "whole", similarity)
    with pytest.raises(KeyboardInterrupt):
        run("simcse", bert, tmp_path / "stopped", pressing(number))
    step = 2 * (number - 1)
    assert [path.name for path in (tmp_path / "stopped/checkpoints").glob("step-*")] == [f"step-{step:08d}"]
    assert signal.getsignal(signal.SIGINT) is before
    again = run("simcse", bert, tmp_path / "stopped", similarity)
    assert again[1].resumed_at == step
    assert_same(whole, again, (tmp_path / "whole", tmp_path / "stopped"))


def test_ctrl_c_pressed_twice_ends_at_once(bert, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run("simcse", bert, tmp_path, pressing(2, times=2))
    assert not list((tmp_path / "checkpoints").glob("step-*"))


def test_killed_before_the_first_checkpoint_the_journal_starts_anew(bert, tmp_path):
    with pytest.raises(Died):
        run("simcse", bert, tmp_path / "died", dying_at(2))
    again = run("simcse", bert, tmp_path / "died", similarity)
    whole = run("simcse", bert, tmp_path / "whole", similarity)
    assert again[1].resumed_at == 0
    assert_same(whole, again, (tmp_path / "whole", tmp_path / "died"))


def test_early_stopping_is_the_same_when_called_again(bert, tmp_path):
    """A run that patience ended is over: called again, it trains no more."""
    from sentloom.training import Selection

    def once(folder):
        method = build("simcse", bert)
        falling = iter(range(100, 0, -1))
        selection = Selection(lambda encoder: float(next(falling)), every=1, patience=2)
        made = settings(checkpoint_seconds=0)
        return train(method, data_for("simcse"), made, seed=1, folder=folder, selection=selection)

    assert once(tmp_path).steps == 3  # the best is step 1, then two scores below it
    again = once(tmp_path)
    assert (again.steps, again.resumed_at, again.best_step) == (3, 3, 1)


def test_another_frozen_part_is_refused(bert, tmp_path):
    from sentloom.errors import InputError

    run("self-guided", bert, tmp_path, checkpoint_seconds=0)
    method = build("self-guided", bert)
    with torch.no_grad():
        next(method.guide.parameters()).add_(1)
    with pytest.raises(InputError, match="other frozen parts"):
        train(method, data_for("self-guided"), settings(), seed=5, folder=tmp_path)


def test_a_checkpoint_of_another_version_is_refused(bert, tmp_path):
    from sentloom.errors import InputError
    from sentloom.training.checkpoints import Checkpoint, newest_checkpoint, write_checkpoint

    run("simcse", bert, tmp_path, checkpoint_seconds=0)
    newest = newest_checkpoint(tmp_path / "checkpoints", print)
    older = {name: fact for name, fact in newest.facts.items() if name != "best_gauges"}
    write_checkpoint(tmp_path / "checkpoints", Checkpoint(newest.state, newest.optimizer, older))
    with pytest.raises(InputError, match="another version of sentloom, without best_gauges"):
        run("simcse", bert, tmp_path)


def test_other_threads_are_told(bert, tmp_path):
    told = []
    run("simcse", bert, tmp_path, checkpoint_seconds=0)
    torch.set_num_threads(2)
    train(build("simcse", bert), data_for("simcse"), settings(), seed=5, folder=tmp_path, log=told.append)
    assert told == [
        "the checkpoint was made on another setup (threads: 1 then, 2 now): the last digits of the result may differ"
    ]


@pytest.mark.parametrize("case", quick_first(WHOLE, ("simcse", "bootstrapped")))
def test_frozen_parameters_keep_their_bits(case, bert, tmp_path):
    method = build(case, bert)
    method.encoder.backbone.freeze(2)
    before = state(method)
    train(method, data_for(case), settings(weight_decay=0.1), seed=1, folder=tmp_path)
    moved = set(unequal(state(method), before))
    frozen = {name for name, p in method.named_parameters() if not p.requires_grad and not name.startswith("target.")}
    assert any("layer.1." in name for name in frozen)
    assert any("word_embeddings" in name for name in frozen)
    assert not moved & frozen
    assert any(name.startswith("encoder.backbone.model.encoder.layer.2.") for name in moved)


def test_seeds_differ_and_the_same_seed_does_not(bert, tmp_path):
    def trained(seed, number):
        method = build("simcse", bert)
        train(method, data_for("simcse"), settings(), seed=seed, folder=tmp_path / f"{number}")
        return state(method)

    one, same, other = trained(1, 0), trained(1, 1), trained(2, 2)
    assert unequal(one, same) == []
    assert unequal(one, other) != []


@pytest.mark.long
def test_adapters_go_on(bert, tmp_path):
    pytest.importorskip("peft")
    from sentloom.encoder.lora import add_lora
    from sentloom.training import Selection

    def once(folder, score, **values):
        method = build("supervised", bert)
        torch.manual_seed(0)
        add_lora(method.encoder, rank=2, alpha=4)
        selection = Selection(score, every=2)
        outcome = train(method, data_for("supervised"), settings(**values), seed=5, folder=folder, selection=selection)
        return method, outcome

    whole = once(tmp_path / "whole", similarity)
    score = dying_at(4)
    with pytest.raises(Died):
        once(tmp_path / "died", score, checkpoint_seconds=0)
    died = once(tmp_path / "died", score, checkpoint_seconds=0)
    assert died[1].resumed_at == 5
    assert_same(whole, died, (tmp_path / "whole", tmp_path / "died"))
