"""NaN, infinity or huge values in a loss, a gradient or a weight: the run stops, says where, and keeps what is good.

Every method is trained for a few steps with a checkpoint after each. At a drawn step one value goes wrong. The run must
stop before anything wrong is kept: the step and the rows of its batch are named, the newest checkpoint is finite, and
training from it ends well.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor

from sentloom.data.dataset import Dataset
from sentloom.errors import TrainingStopped
from sentloom.methods import METHODS, Method, TokenMethod
from sentloom.training import Settings, train
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.conftest import Tally
from tests.training.small_runs import CASES, build, data_for, unequal

FAULT = "11. NaN, infinite or huge losses, gradients and weights"
ASKED = 100

STEPS = 5
SEED = 3
WRONG = {"NaN": float("nan"), "infinity": float("inf"), "minus infinity": float("-inf"), "huge": 1e30}
METHOD_CASES = [case for case in CASES if case in METHODS or case == "self-guided opt2"]
VALUES = {  # one huge number in a vector makes no loss and no gradient huge: cosines are taken
    "loss": (("NaN", "infinity"), ("minus infinity", "huge")),
    "vector": (("NaN", "infinity"), ("NaN", "minus infinity")),
    "gradient": (tuple(WRONG), tuple(WRONG)),
    "weight": (("NaN", "huge"), ("infinity", "minus infinity")),
}
CHOSEN = [  # 100: every method with every part, and ten values of each method
    (case, part, value)
    for number, case in enumerate(METHOD_CASES)
    for part in VALUES
    for value in VALUES[part][number % 2]
]
QUICK = 4


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


def parameters(method: Method) -> dict[str, Tensor]:
    """Without buffers: running means move with every forward pass, and none is kept of a run that stops."""
    return {name: parameter.detach().clone() for name, parameter in method.named_parameters()}


class Injected:
    """A method in which one value goes wrong in one step; it remembers its parameters behind the step before."""

    def __init__(self, method: Method, part: str, value: float, step: int) -> None:
        self.method, self.value, self.at, self.step = method, value, step, 0
        self.good = parameters(method)
        self._after = method.after_step
        method.after_step = self._count  # type: ignore[method-assign]
        getattr(self, f"_into_{part}")()

    def _count(self) -> None:
        self._after()
        self.step += 1
        if self.step < self.at:
            self.good = parameters(self.method)

    def _now(self) -> bool:
        return self.step == self.at - 1 and self.method.training

    def _into_loss(self) -> None:
        name = "summed_loss" if isinstance(self.method, TokenMethod) else "loss"
        right = getattr(self.method, name)

        def wrong(*arguments: object) -> Tensor:
            loss = right(*arguments)
            return loss * self.value if self._now() else loss

        setattr(self.method, name, wrong)

    def _into_vector(self) -> None:
        """One number of every state that the encoder's last block gives."""

        def hook(_: object, __: object, states: Tensor) -> Tensor:
            if not (self._now() and self.method.encoder.training):
                return states
            states = states.clone()
            states[..., 5] = self.value
            return states

        self.method.encoder.backbone.model.encoder.layer[-1].output.register_forward_hook(hook)

    def _into_gradient(self) -> None:
        def hook(gradient: Tensor) -> Tensor:
            gradient = gradient.clone()
            gradient.view(-1)[3] = self.value if self._now() else gradient.view(-1)[3]
            return gradient

        self.method.encoder.backbone.model.encoder.layer[1].output.dense.weight.register_hook(hook)

    def _into_weight(self) -> None:
        """Behind the optimizer's step, as a rate that is far too high would."""
        count = self.method.after_step

        def spoil() -> None:
            now = self._now()
            count()
            if now:
                with torch.no_grad():
                    self.method.encoder.backbone.model.get_input_embeddings().weight[0, 1] = self.value

        self.method.after_step = spoil  # type: ignore[method-assign]


def settings(**values: object) -> Settings:
    common = {"batch": 4, "steps": STEPS, "learning_rate": 1e-3, "log_every": 2, "checkpoint_seconds": 0}
    return Settings(**(common | values))


def check_case(case: str, part: str, value: str, number: int, bert: Path, folder: Path) -> None:
    random = np.random.default_rng(number)
    at = int(random.integers(2, STEPS + 1))
    made = settings(accumulate=int(random.integers(1, 3)), clip=random.choice([None, 1.0]))
    data = data_for(case, 24)
    injected = Injected(build(case, bert), part, WRONG[value], at)
    with pytest.raises(TrainingStopped) as stopped:
        train(injected.method, data, made, seed=SEED, folder=folder)
    if part != "weight":
        assert unequal(injected.good, parameters(injected.method)) == [], "the optimizer moved"
    check_report(stopped.value, at, data, made, folder)
    check_resumed(case, at, data, made, bert, folder)


def check_report(error: TrainingStopped, step: int, data: Dataset, made: Settings, folder: Path) -> None:
    """The step and the rows of its batch, in the message and in full in a file."""
    batches = made.batches(data, SEED)
    parts = range((step - 1) * made.accumulate, step * made.accumulate)
    rows = np.concatenate([batches.rows(part) for part in parts])
    facts = json.loads((folder / "stopped.json").read_text("utf-8"))
    assert error.exit_code == 2
    assert str(error).startswith(f"step {step}, rows {data.place(int(rows[0]))}, ")
    assert facts["places"] == [data.place(int(row)) for row in rows]


def check_resumed(case: str, step: int, data: Dataset, made: Settings, bert: Path, folder: Path) -> None:
    """The newest checkpoint is the one before the step; it is finite, and training from it ends well."""
    newest = max((folder / "checkpoints").glob("step-*"))
    assert newest.name == f"step-{step - 1:08d}"
    for name in ("state", "optimizer"):
        for key, tensor in load_file(newest / f"{name}.safetensors").items():
            assert torch.isfinite(tensor).all(), key
    again = build(case, bert)
    outcome = train(again, data, made, seed=SEED, folder=folder)
    assert (outcome.resumed_at, outcome.steps) == (step - 1, STEPS)
    assert np.isfinite(again.encoder.encode(SENTENCES)).all()
    assert not (folder / "stopped.json").exists()


def check_all(chosen: list[tuple[int, tuple[str, str, str]]], bert: Path, folder: Path, tally: Tally) -> None:
    for number, (case, part, value) in chosen:
        with tally.case(f"{value} in a {part} of {case}"):
            check_case(case, part, value, number, bert, folder / str(number))


def test_a_few_wrong_values(bert: Path, tmp_path: Path, tally: Tally) -> None:
    chosen = list(enumerate(CHOSEN))
    check_all([chosen[int(at)] for at in np.linspace(0, len(chosen) - 1, QUICK)], bert, tmp_path, tally)


@pytest.mark.long
@pytest.mark.parametrize("case", METHOD_CASES)
def test_wrong_values_in_every_method(case: str, bert: Path, tmp_path: Path, tally: Tally) -> None:
    check_all([(number, one) for number, one in enumerate(CHOSEN) if one[0] == case], bert, tmp_path, tally)


def write_recipe(folder: Path, base: Path, **stage: object) -> Path:
    (folder / "texts.txt").write_text("\n".join(f"{text} {n}" for n in range(3) for text in SENTENCES), "utf-8")
    one = {"method": "simcse", "data": "texts.txt", "batch": 4, "steps": 4, "learning_rate": 1e-3, "log_every": 2}
    (folder / "recipe.yaml").write_text(yaml.safe_dump({"base": str(base), "stages": [one | stage]}), "utf-8")
    return folder / "recipe.yaml"


@pytest.mark.parametrize("rate", [1e12, 1e30])
def test_the_command_ends_with_2(rate: float, bert: Path, tmp_path: Path, sentloom: Callable) -> None:
    """A learning rate beyond reason: its first step overflows."""
    done = sentloom("lab", "train", write_recipe(tmp_path, bert, learning_rate=rate), "-o", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert "not finite" in done.stderr or "norm" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(list((tmp_path / "out").rglob("stopped.json"))) == 1
    assert not list((tmp_path / "out").rglob("model.safetensors"))
