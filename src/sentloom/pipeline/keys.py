"""A stage's key: a hash of all that its result depends on. What has the same key is the same work.

Options and settings at their defaults are left out, so that a new option leaves old keys valid; who changes a default
raises the method's REVISION, or ENGINE. An option that names a model counts as what the model is, wherever it lies.
"""

import hashlib
import json
from typing import Any

from sentloom.data.dataset import Dataset
from sentloom.encoder import Encoder
from sentloom.methods import METHODS, Options
from sentloom.pipeline.evaluation_sets import EvaluationSet
from sentloom.pipeline.makers import MAKERS, Synthesize, SynthesizeOptions
from sentloom.pipeline.plan import Making, Stage
from sentloom.pipeline.schema import Select

ENGINE = 1  # raised when the loop's numbers change
IDLE = {"log_every", "checkpoint_seconds", "snapshots"}  # settings that change no number


def stage_key(
    stage: Stage,
    data: Dataset,
    encoder: str,
    seed: int,
    select: Select | None,
    evaluation_set: EvaluationSet | None,
    machine: str,
) -> str:
    """Of one stage: `encoder` is the fingerprint of what goes in, `machine` says precision and processes."""
    return content_key(
        engine=ENGINE,
        method=stage.method,
        revision=METHODS[stage.method].REVISION,
        options=stage.options.model_dump(mode="json", exclude_defaults=True) | model_prints(stage.options),
        settings=stage.settings.model_dump(mode="json", exclude=IDLE, exclude_defaults=True),
        pooling=stage.pooling,
        max_length=stage.max_length,
        **({"vocabulary": stage.vocabulary} if stage.vocabulary else {}),
        data=[data.sha256, str(data.shape), dict(data.used)],
        encoder=encoder,
        seed=seed,
        select=select and select.model_dump(mode="json", exclude={"on", "data"}),
        evaluation_set=evaluation_set and evaluation_set.data.sha256,
        machine=machine,
    )


def making_key(stage: Making, data: Dataset, model: str, machine: str) -> str:
    """Of a stage that trains a text-to-text model: `model` is the hash of what goes in, or the key of its stage."""
    assert stage.settings is not None
    return content_key(
        engine=ENGINE,
        method=stage.method,
        revision=MAKERS[stage.method].REVISION,
        options=stage.options.model_dump(mode="json", exclude_defaults=True),
        settings=stage.settings.model_dump(mode="json", exclude=IDLE, exclude_defaults=True),
        model=model,
        data=[data.sha256, str(data.shape), dict(data.used)],
        seed=stage.seed,
        machine=machine,
    )


def ledger_key(options: SynthesizeOptions, data: Dataset, model: str) -> str:
    """Of all that a ledger's rows depend on. What filters them and how many there are is not in it: it grows."""
    return content_key(
        method=Synthesize.NAME,
        revision=Synthesize.REVISION,
        sampling=options.sampling.model_dump(mode="json", exclude_defaults=True),
        backend=options.backend,
        block=options.block,
        model=model,
        data=data.sha256,
    )


def synthetic_key(options: SynthesizeOptions, ledger: str) -> str:
    """Of the data that filters leave of a ledger."""
    return content_key(
        ledger=ledger, rows=options.rows, filtering=options.filtering.model_dump(mode="json", exclude_defaults=True)
    )


def named_models(options: Options) -> dict[str, str]:
    """The models that options name, by option."""
    named = {name: getattr(options, name) for name in options.MODELS}
    return {name: model for name, model in named.items() if model is not None}


def model_prints(options: Options) -> dict[str, str]:
    """The fingerprints of the models that options name."""
    return {name: Encoder.load(model).fingerprint() for name, model in named_models(options).items()}


def content_key(**parts: Any) -> str:
    """The hash of plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]
