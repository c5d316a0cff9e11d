"""Collapse provoked on purpose raises the alarm in time; healthy runs raise none.

A run collapses when the mean cosine of distinct sentences goes above 0.99. It is measured here after every fifth step,
by a formula of its own. From then on the alarm has 200 steps; the journal is written every 40 steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.methods import METHODS, Embeddings, Method
from sentloom.methods.bootstrapped import Bootstrapped
from sentloom.methods.contrastive import Contrastive
from sentloom.methods.contrastive_bt import ContrastiveBt
from sentloom.methods.cross_lingual import CrossLingual
from sentloom.methods.self_guided import SelfGuided
from sentloom.methods.simcse import Simcse
from sentloom.training import Settings, train
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.conftest import Tally
from tests.small_data import build_dataset
from tests.training.small_runs import CASES, build, data_for, loaded, pairs

FAULT = "12. collapse"
ASKED = 80  # 20 provocations with 3 seeds, and 20 healthy runs

LIMIT = 0.99
LATEST = 200
MEASURED_EVERY = 5
TEXTS = [f"{text} {number}" for number in range(2) for text in SENTENCES]


def without_negatives(kind: type[Method]) -> type[Method]:
    """A method that only pulls its positives together."""

    class Attracting(kind):  # type: ignore[misc, valid-type]
        def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
            return -F.cosine_similarity(embeddings[0], embeddings[1], dim=-1).mean()

    return Attracting


class WithoutPredictor(Bootstrapped):
    """The online encoder itself is pulled to its moving average."""

    def __init__(self, encoder: Any, options: Any) -> None:
        super().__init__(encoder, options)
        self.predictor = nn.Identity()  # type: ignore[assignment]


class WithoutStopGradient(Bootstrapped):
    """Both sides of the cosine move."""

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        one, two, _, _ = embeddings
        first, second = self.predictor(one), self.predictor(two)
        return -(F.cosine_similarity(first, two).mean() + F.cosine_similarity(second, one).mean()) / 2


class WrongSign(Simcse):
    """Climbs its loss."""

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        return -super().loss(embeddings, batch)


@dataclass(frozen=True)
class Provoked:
    """What is trained, on the data of which case, and how."""

    kind: type[Method]
    data: str
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


FAST = {"learning_rate": 0.1}
SMALL_HEAD = {"head_width": 16, "regularizer": 0.0}
SHARED = {"source_encoder": "shared", "queue": 0}
PROVOKED = {
    "simcse, no negatives": Provoked(without_negatives(Simcse), "simcse"),
    "simcse, no negatives and no head": Provoked(without_negatives(Simcse), "simcse", {"head": False}),
    "contrastive, no negatives": Provoked(without_negatives(Contrastive), "contrastive"),
    "contrastive-bt, no negatives": Provoked(without_negatives(ContrastiveBt), "contrastive-bt", SMALL_HEAD),
    "self-guided, no negatives": Provoked(
        without_negatives(SelfGuided), "self-guided", {**SMALL_HEAD, "objective": "opt2"}
    ),
    "cross-lingual, no negatives": Provoked(without_negatives(CrossLingual), "cross-lingual", SHARED),
    "no predictor, momentum 0": Provoked(WithoutPredictor, "bootstrapped", {"momentum": 0.0}),
    "no predictor, momentum 0.5": Provoked(WithoutPredictor, "bootstrapped", {"momentum": 0.5}),
    "no predictor, target dropout": Provoked(
        WithoutPredictor, "bootstrapped", {"momentum": 0.0, "target_dropout": True}
    ),
    "no stop-gradient": Provoked(WithoutStopGradient, "bootstrapped", {"predictor_width": 2}),
    "wrong sign": Provoked(WrongSign, "simcse"),
    "all sources the same text": Provoked(METHODS["mse-distillation"], "the same source"),
    "temperature 100 and a huge rate": Provoked(Simcse, "simcse", {"temperature": 100.0}, FAST),
    "temperature 0.0001 and a huge rate": Provoked(Simcse, "simcse", {"temperature": 1e-4}, FAST),
    **{
        f"{case} with a huge rate": Provoked(METHODS[case], case, CASES[case], FAST)
        for case in ("bootstrapped", "contrastive", "nli-classification", "mlm", "cross-lingual", "mse-distillation")
    },
}
HEALTHY = [(case, seed) for seed in (1, 2) for case in (*METHODS, "self-guided opt2")]
QUICK = "no predictor, momentum 0"


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


def data_of(name: str) -> Dataset:
    if name != "the same source":
        return data_for(name)
    return build_dataset(Shape.PARALLEL, [("It rains.", text) for text in pairs().column("positive").to_pylist()])


def mean_cosine(vectors: Any) -> float:
    """Over all pairs of distinct rows."""
    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    number = len(unit)
    return float(((unit @ unit.T).sum() - number) / (number * (number - 1)))


def measured(method: Method) -> Callable[[], int | None]:
    """Measure a method as it trains; the result says after which step it was first above the limit."""
    after, steps = method.after_step, 0
    crossed: list[int] = []

    def look() -> None:
        nonlocal steps
        after()
        steps += 1
        if steps % MEASURED_EVERY == 0 and mean_cosine(method.encoder.encode(TEXTS)) > LIMIT:
            crossed.append(steps)

    method.after_step = look  # type: ignore[method-assign]
    return lambda: crossed[0] if crossed else None


def made(**values: Any) -> Settings:
    common = {"batch": 8, "steps": 80, "learning_rate": 5e-3, "log_every": 40, "checkpoint_seconds": 1e9}
    return Settings(**(common | values))


def check_alarm(one: Provoked, seed: int, bert: Path, folder: Path) -> None:
    torch.manual_seed(seed)
    method = one.kind(loaded(bert).copy(), one.kind.Options(**one.options)).train()
    crossed, told = measured(method), []
    outcome = train(method, data_of(one.data), made(**one.settings), seed=seed, folder=folder, log=told.append)
    step = crossed()
    assert step is not None, "it did not collapse: nothing was tested"
    assert outcome.alarms, f"no alarm: above {LIMIT} from step {step} on"
    assert int(outcome.alarms[0].split()[1].rstrip(":")) <= step + LATEST
    assert "collapse alarm at step" in "".join(told)


def test_a_collapse(bert: Path, tmp_path: Path, tally: Tally) -> None:
    with tally.case(QUICK):
        check_alarm(PROVOKED[QUICK], 0, bert, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", PROVOKED)
def test_collapses(name: str, bert: Path, tmp_path: Path, tally: Tally) -> None:
    for seed in (1, 2, 3):
        with tally.case(f"{name}, seed {seed}"):
            check_alarm(PROVOKED[name], seed, bert, tmp_path / str(seed))


@pytest.mark.long
def test_healthy_runs_raise_no_alarm(bert: Path, tmp_path: Path, tally: Tally) -> None:
    """Every method at a rate that suits it, gauged every fifth step."""
    for number, (case, seed) in enumerate(HEALTHY):
        with tally.case(f"{case}, seed {seed}"):
            settings = made(steps=60, learning_rate=3e-4, log_every=5)
            outcome = train(
                build(case, bert, seed=seed), data_for(case), settings, seed=seed, folder=tmp_path / str(number)
            )
            assert outcome.alarms == ()
