"""Small methods and data for the training engine: a BERT of three blocks, sentences by hand, no hub."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.methods import METHODS, Method, TokenMethod
from sentloom.training import Outcome, Settings, train
from tests.encoder.small_models import SENTENCES
from tests.search.small_cross_encoders import build_cross_encoder
from tests.small_data import build_dataset

# Every method, and every objective of those that have several.
CASES = {
    "simcse": {},
    "self-guided": {"head_width": 16, "temperature": 0.1},
    "self-guided cut": {"dimensions": (32, 8), "head_width": None, "temperature": 0.1},
    "self-guided opt2": {"objective": "opt2", "head_width": 16, "temperature": 0.1},
    "self-guided opt1": {"objective": "opt1", "head_width": 16, "temperature": 0.1},
    "self-guided sg": {"objective": "sg", "head_width": 16, "temperature": 0.1},
    "bootstrapped": {"predictor_width": 2, "momentum": 0.9},
    "contrastive-bt": {"head_width": 16, "temperature": 0.1},
    "mlm": {},
    "is-bert": {"filters": 4},
    "tsdae": {},
    "contrastive": {"negatives": 2, "directions": "both", "projection": 8},
    "margin-mse": {"negatives": 2},
    "distill": {"negatives": 2, "temperature": 0.3},
    "contrastive guided": {"guided": True, "directions": "both"},
    "contrastive cut": {"dimensions": (32, 16, 4), "negatives": 2},
    "supervised": {},
    "supervised twice": {"dropout_views": 2, "positives_below": True},
    "cosent": {},
    "angle": {},
    "nli-classification": {},
    "cross-lingual": {"queue": 21, "temperature": 0.3, "head": "linear-tanh"},
    "cross-lingual dual": {"source_encoder": "trained", "queue": 0},
    "cross-lingual shared": {"source_encoder": "shared", "queue": 0},
    "mse-distillation": {"head": "linear", "keep_head": False},
}
TAUGHT = ("margin-mse", "distill")
# Those whose whole runs are compared, killed, and divided among processes.
WHOLE = ("simcse", "self-guided", "bootstrapped", "contrastive-bt", "mlm", "cross-lingual")


def quick_first(cases: Iterable[str], quick: tuple[str, ...]) -> list[Any]:
    """Cases for parametrize: those named run in `make test`, the others are long."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.long) for case in cases]


@cache
def loaded(folder: Path) -> Encoder:
    return Encoder.load(folder, pooling="mean", max_length=12)


def teacher_beside(folder: Path) -> str:
    """A small cross-encoder in the folder of the small models, built once."""
    target = folder.with_name("teacher")
    if not target.exists():
        part = build_cross_encoder(Path(mkdtemp(dir=folder.parent)) / "teacher")
        with suppress(OSError):  # another process was faster
            part.rename(target)
    return str(target)


def build(case: str, folder: Path, dropout: float | None = None, seed: int = 7, **options) -> Method:
    """A method over the small model, in training mode."""
    kind = METHODS[case.split()[0]]
    encoder = loaded(folder).copy()
    if dropout is not None:
        encoder.backbone.dropout = dropout
    if case in TAUGHT:
        options["teacher"] = teacher_beside(folder)
    torch.manual_seed(seed)
    return kind(encoder, kind.Options(**(CASES[case] | options))).train()


def nudge(method: Method) -> Method:
    """Away from the start, where a distance from it has no gradient."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in method.encoder.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape))
    return method


def pairs(rows: int = 32) -> Dataset:
    """Pairs of unlike texts, two of them with a text in common."""
    firsts = [f"{SENTENCES[i % 8][:-1]} {i // 8}" for i in range(rows)]
    seconds = [f"{SENTENCES[(3 * i) % 8]} and {i}" for i in range(rows)]
    seconds[1] = firsts[5].upper()
    return build_dataset(Shape.PAIRS, list(zip(firsts, seconds, strict=True)))


def texts(rows: int = 32) -> Dataset:
    return build_dataset(Shape.TEXTS, [(text,) for text in pairs(rows).column("anchor").to_pylist()])


def data_for(case: str, rows: int = 32) -> Dataset:
    """What a method likes best."""
    both = zip(pairs(rows).column("anchor").to_pylist(), pairs(rows).column("positive").to_pylist(), strict=True)
    if case.split()[0] in ("cross-lingual", "mse-distillation"):
        return build_dataset(Shape.PARALLEL, list(both))
    if case.split()[0] == "contrastive" or case in TAUGHT:  # three hard negatives or one, of which two are drawn
        others = [[f"{SENTENCES[(i + k) % 8]} not {i}" for k in range(3 if i % 2 else 1)] for i in range(rows)]
        return build_dataset(Shape.TRIPLETS, [(*pair, other) for pair, other in zip(both, others, strict=True)])
    if case.split()[0] == "supervised":  # labels with many rows, few, and one
        labels = ["a"] * (rows // 2) + ["b"] * (rows // 4) + [f"c {i // 2}" for i in range(rows)]
        return build_dataset(
            Shape.CLASSIFICATION, [(one, label) for (one, _), label in zip(both, labels, strict=False)]
        )
    if case in ("cosent", "angle"):
        return build_dataset(Shape.SCORED_PAIRS, [(*pair, i % 6 / 2) for i, pair in enumerate(both)])
    if case == "nli-classification":
        labels = ("entailment", "neutral", "contradiction")
        return build_dataset(Shape.NLI, [(*pair, labels[i % 3]) for i, pair in enumerate(both)])
    return pairs(rows) if case.split()[0] in ("bootstrapped", "contrastive-bt") else texts(rows)


def settings(**values) -> Settings:
    common = {"batch": 8, "steps": 8, "learning_rate": 1e-3, "log_every": 3, "checkpoint_seconds": 1e9}
    return Settings(**(common | values))


def run(case: str, model: Path, folder: Path, score: Callable | None = None, **values) -> tuple[Method, Outcome]:
    """Train a case in a folder, as a second call of the same command would."""
    from sentloom.training import Selection

    method = build(case, model)
    selection = Selection(score, every=2) if score else None
    accelerator = Accelerator(cpu=True)
    outcome = train(
        method, data_for(case), settings(**values), seed=5, folder=folder, accelerator=accelerator, selection=selection
    )
    return method, outcome


def whole_loss(method: Method, batch: Batch) -> torch.Tensor:
    """The loss with all graphs kept: what every cut of the batch must equal."""
    if isinstance(method, TokenMethod):
        return method.summed_loss(batch) / method.weight(batch)
    return method.total_loss(method.embed(batch), batch)


def gradients(method: Method) -> torch.Tensor:
    """All gradients in one vector; zeros where a parameter got none."""
    learning = [p for p in method.parameters() if p.requires_grad]
    return torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in learning])


def far(tensor: torch.Tensor, expected: torch.Tensor) -> float:
    """The relative distance of two gradients."""
    return float((tensor - expected).norm() / expected.norm())


def state(method: Method) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in method.state_dict().items()}


def unequal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> list[str]:
    """The names of tensors that are not bit for bit the same."""
    assert first.keys() == second.keys()
    return [name for name in first if not torch.equal(first[name], second[name])]


def similarity(encoder: Encoder) -> float:
    """A score that any change of weights changes."""
    x, y = encoder.encode(SENTENCES[:2])
    return float(x @ y) * 100


def journal(folder: Path) -> list[dict]:
    """The records of a run without its times."""
    from sentloom.training.health import read_journal

    return [{name: value for name, value in line.items() if name != "seconds"} for line in read_journal(folder)]


def plain(outcome: Outcome) -> dict:
    """An outcome without what depends on time and interruptions."""
    return {name: value for name, value in vars(outcome).items() if name not in ("seconds", "resumed_at")}
