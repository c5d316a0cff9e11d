"""kill -9 while training: the run is started again and ends with the weights, optimizer and queue of one never killed.

For each method 50 kills at random instants, 10 of them inside a save; nothing is cleaned up in between.
"""

from pathlib import Path

import pytest
from accelerate import Accelerator

from sentloom.lab.synthesizer import Synthesizer, SynthesizerOptions
from sentloom.training import Selection, train
from sentloom.writing.text_to_text import TextToText
from tests.encoder.small_models import build_model_folder
from tests.faults.conftest import Tally
from tests.training import killing
from tests.training.killing import assert_as_if_never_killed, complete, half_checkpoints, kill_until_done, save_end
from tests.training.small_runs import settings
from tests.writing.small_synthesizers import SHORT, build_small_t5, triplets

FAULT = "1. kill -9 while training"
ASKED = 500
WHY_FEWER = "250 are asked for on a CPU and as many on a GPU; there is no GPU here"

METHODS = ("self-guided", "bootstrapped", "cross-lingual", "contrastive", "synthesizer")
STEPS, PARTS = 40, 5
KILLS, SAVES = 50 // PARTS, 10 // PARTS


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    bert, t5 = build_model_folder("bert", folder / "bert"), build_small_t5(folder / "t5")
    return {method: t5 if method == "synthesizer" else bert for method in METHODS}


@pytest.fixture(scope="module")
def wholes() -> dict[str, tuple[Path, float]]:
    """Runs that nobody killed, and how long they took: each is made by the first test that needs it."""
    return {}


def finish(method: str, model: Path, folder: Path) -> None:
    if method == "synthesizer":
        synthesize(model, folder)
    else:
        killing.finish(method, model, folder, STEPS)


def synthesize(model: Path, folder: Path) -> None:
    """The text-to-text model of GenSE, which is trained by the same loop."""
    learner = Synthesizer(TextToText.load(model, wording=SHORT), SynthesizerOptions(wording=SHORT))
    selection = Selection(lambda kept: sum(float(tensor.abs().sum()) for tensor in kept.parameters()), every=2)
    made = settings(steps=STEPS, **killing.STEPS)
    train(
        learner, triplets(32), made, seed=5, folder=folder, accelerator=Accelerator(cpu=True), selection=selection
    )  # fmt: skip
    save_end(learner, folder)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("method", METHODS)
def test_a_run_killed_again_and_again_ends_with_the_same_bits(
    method, part, models, wholes, tmp_path, tmp_path_factory, tally: Tally
):
    if method not in wholes:
        folder = tmp_path_factory.mktemp("whole")
        wholes[method] = folder, complete(lambda: finish(method, models[method], folder), folder)
    whole, seconds = wholes[method]
    tally.tried += KILLS
    killed = kill_until_done(
        lambda folder: finish(method, models[method], folder),
        tmp_path / f"killed-{part}",
        seconds,
        half_checkpoints,
        KILLS,
        inside=SAVES,
    )
    for run in killed:
        assert_as_if_never_killed(whole, run)
