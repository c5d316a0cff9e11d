"""Snapshots: the encoder on the way, each a model folder; a run that died leaves the same ones."""

import pytest

from sentloom.encoder import Encoder
from tests.training.small_runs import run, state, unequal
from tests.training.test_resume import Died, dying_at


def kept(folder):
    """The weights of each snapshot, by its name."""
    return {path.name: state(Encoder.load(path)) for path in sorted(folder.glob("snapshots/*"))}


def test_they_are_the_encoder_at_their_steps(bert, tmp_path):
    method, _ = run("cross-lingual", bert, tmp_path / "run", snapshots=3)
    snapshots = kept(tmp_path / "run")
    assert list(snapshots) == [f"step-{step:08d}" for step in (0, 3, 6, 8)]  # the start, every third, the end
    assert unequal(snapshots["step-00000000"], state(Encoder.load(bert))) == []
    assert unequal(snapshots["step-00000008"], state(method.encoder)) == []
    assert unequal(snapshots["step-00000003"], snapshots["step-00000006"]) != []
    plain, _ = run("cross-lingual", bert, tmp_path / "plain")
    assert not (tmp_path / "plain/snapshots").exists()
    assert unequal(state(plain), state(method)) == []  # they change no number


@pytest.mark.long
def test_a_run_that_died_leaves_the_same_ones(bert, tmp_path):
    run("cross-lingual", bert, tmp_path / "whole", snapshots=2)
    score = dying_at(3)  # in step 4
    with pytest.raises(Died):
        run("cross-lingual", bert, tmp_path / "died", score, checkpoint_seconds=0, snapshots=2)
    assert list(kept(tmp_path / "died")) == ["step-00000000", "step-00000002"]
    run("cross-lingual", bert, tmp_path / "died", score, checkpoint_seconds=0, snapshots=2)
    whole, died = kept(tmp_path / "whole"), kept(tmp_path / "died")
    assert list(whole) == list(died)
    assert all(unequal(whole[name], died[name]) == [] for name in whole)


def test_wanted_later_they_begin_where_the_run_goes_on(bert, tmp_path):
    score = dying_at(3)
    with pytest.raises(Died):
        run("simcse", bert, tmp_path, score, checkpoint_seconds=0)
    _, outcome = run("simcse", bert, tmp_path, score, checkpoint_seconds=0, snapshots=3)
    assert outcome.resumed_at == 3
    assert list(kept(tmp_path)) == [f"step-{step:08d}" for step in (3, 6, 8)]
