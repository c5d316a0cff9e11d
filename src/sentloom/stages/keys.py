"""A stage's key: a hash of all that its result depends on. What has the same key is the same work.

Options and settings at their defaults are left out, so that a new option leaves old keys valid; who changes a default
raises the method's REVISION, or ENGINE.
"""

import hashlib
import json
from typing import Any

from sentloom.data.dataset import Dataset
from sentloom.methods import METHODS
from sentloom.recipe import Select, Stage
from sentloom.stages.judges import Judge

ENGINE = 1  # raised when the loop's numbers change
IDLE = {"log_every", "checkpoint_seconds"}  # settings that change no number


def stage_key(
    stage: Stage, data: Dataset, encoder: str, seed: int, select: Select | None, judge: Judge | None, machine: str
) -> str:
    """Of one stage: `encoder` is the fingerprint of what goes in, `machine` says precision and processes."""
    return content_key(
        engine=ENGINE,
        method=stage.method,
        revision=METHODS[stage.method].REVISION,
        options=stage.options.model_dump(mode="json", exclude_defaults=True),
        settings=stage.settings.model_dump(mode="json", exclude=IDLE, exclude_defaults=True),
        pooling=stage.pooling,
        max_length=stage.max_length,
        data=[data.sha256, str(data.shape), dict(data.used)],
        encoder=encoder,
        seed=seed,
        select=select and select.model_dump(mode="json", exclude={"on", "data"}),
        judge=judge and judge.data.sha256,
        machine=machine,
    )


def content_key(**parts: Any) -> str:
    """The hash of plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]
