"""The models of `panel_correlation`: the embedded encoder, degraded copies of it, and short trainings like `fit`'s."""

import shutil
import time
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import torch

from sentloom import Encoder
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import Shape, arrow_type
from sentloom.engine.artifacts import content_key
from sentloom.fitting.panel import halves, without_some_words
from sentloom.methods import METHODS
from sentloom.training import Settings, train

REVISION = 1  # raised when trained models would come out otherwise
BASE = "embedded"
LONGEST = 40  # tokens
BATCH = 16


@dataclass(frozen=True)
class Run:
    """A short training: what is kept of it, at which steps, and what its preset is changed by."""

    name: str
    method: str
    steps: tuple[int, ...]  # multiples of the first
    near: bool = True
    values: dict = field(default_factory=dict)


OWN = {  # on the domain's own sentences or pairs, by the data they take
    "texts": (
        Run("simcse", "simcse", (15, 45), values={"pooling": "mean"}),
        Run("simcse, rate 1e-3", "simcse", (10,), False, {"pooling": "mean", "learning_rate": 1e-3}),
        Run("bootstrapped", "bootstrapped", (15,), values={"learning_rate": 1e-4}),
        Run("self-guided", "self-guided", (20,), False, {"pooling": "first"}),  # not the base's pooling
    ),
    "halves": (Run("contrastive on halves", "contrastive", (20,)),),
    "dropped": (Run("contrastive on words dropped", "contrastive", (20,)),),
    "pairs": (Run("contrastive on own pairs", "contrastive", (15, 30)),),
}
NLI = Run("contrastive on NLI", "contrastive", (30, 60))
DOCSTRINGS = Run("contrastive on docstrings", "contrastive", (30,))
NOISE = (0.1, 0.2, 0.4)  # of a matrix's own deviation


def dataset(shape, **columns):
    """Rows in memory as a data set."""
    rows = len(next(iter(columns.values())))
    made = {name: pa.array(cells, arrow_type(name)) for name, cells in columns.items()}
    made |= {FILE: pa.array([0] * rows, pa.int32()), LINE: pa.array(range(1, rows + 1), pa.int64())}
    return Dataset(shape, pa.table(made), ("memory",), "row", content_key(**columns))


def pairs_of(pairs):
    return dataset(Shape.PAIRS, anchor=[a for a, _ in pairs], positive=[b for _, b in pairs])


def own_data(one):
    """What the runs of a domain learn from."""
    dropped = [(text, without_some_words(text)) for text in one.texts]
    return {
        "texts": dataset(Shape.TEXTS, text=one.texts),
        "halves": pairs_of(halves(one.texts)),
        "dropped": pairs_of([pair for pair in dropped if pair[0] != pair[1]]),
        "pairs": pairs_of(one.pairs),
    }


def models(one, out, shared):
    """By name: how to load the model, and whether it is near the base rather than degraded on purpose."""
    found = {
        "base": (partial(load, BASE), True),
        "first pooling": (partial(load, BASE, pooling="first"), False),
        "mean of layer 3": (partial(load, BASE, pooling="mean@3"), False),
        **{f"noise {strength}": (partial(noisy, strength), False) for strength in NOISE},
    }
    for run, data in shared:
        found |= snapshots(run, data, out)
    for kind, data in own_data(one).items():
        for run in OWN[kind]:
            found |= snapshots(run, data, out)
    return found


def load(name, pooling=None):
    return Encoder.load(name, pooling=pooling, max_length=LONGEST)


def noisy(strength):
    encoder, draw = load(BASE), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() > 1:
                weight += strength * weight.std() * torch.randn(weight.shape, generator=draw)
    return encoder


def snapshots(run, data, out):
    """Train, unless that was done, and say where the wanted snapshots lie."""
    kind = METHODS[run.method]
    values = {**kind.PRESETS["default"], "batch": BATCH, "schedule": "constant", "warmup": 0.0, **run.values}
    key = content_key(revision=REVISION, run=run.method, steps=run.steps, values=values, data=data.sha256)
    folder = out / "models" / f"{run.name.replace(' ', '-').replace(',', '')}-{key}"
    places = {step: folder / "snapshots" / f"step-{step:08d}" for step in run.steps}
    if not places[run.steps[-1]].is_dir():
        fit(kind, values, run.values.get("pooling"), run.steps, data, folder)  # None: the base's own
    for place in (folder / "snapshots").iterdir():
        if place not in places.values():
            shutil.rmtree(place)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return {f"{run.name}, {step} steps": (partial(load, place), run.near) for step, place in places.items()}


def fit(kind, values, pooling, steps, data, folder):
    began = time.monotonic()
    fields = set(Settings.model_fields) - {"steps", "snapshots"}
    options = kind.Options(**{name: value for name, value in values.items() if name in kind.Options.model_fields})
    settings = Settings(
        **{name: value for name, value in values.items() if name in fields}, steps=steps[-1], snapshots=steps[0]
    )
    torch.manual_seed(1)
    method = kind(load(BASE, pooling), options)
    train(method, data, settings, seed=1, folder=folder)
    print(f"    trained {folder.name} in {time.monotonic() - began:.0f} s", flush=True)
