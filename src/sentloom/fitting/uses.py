"""How often test rows have been used: every model that is proven on them makes the next proof worth less.

A use is one model tested on one set of rows. Uses are recorded in the user's cache, each in a file of its own, with the
hashes of what was asked: rows count as the same if more than half of either set is in the other, so that adding a few
rows to a file does not start the count again. Testing the same model on the same rows again is the same use, and a
model compared with itself is none.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sentloom.errors import DamagedFile, DiskError
from sentloom.evaluation.task import Task
from sentloom.files import cache_folder, read_record, write_record
from sentloom.hygiene.leaks import forms
from sentloom.progress import note

FOLDER = "test-uses"
SAME = 0.5  # of the smaller set that two sets share, to count as the same rows


@dataclass(frozen=True)
class Uses:
    """Which use of the test rows this is, from 1, and the hash of their content."""

    number: int
    sha256: str


def record_use(tasks: Sequence[Task], model: str, other: str) -> Uses:
    """Record that a model, by its fingerprint, is tested against another one; before it is, so that a crash counts too.

    A model that is compared with itself shows nothing, so that is no use.
    """
    content = hashlib.sha256(str(sorted(_asked(tasks))).encode()).hexdigest()
    if model == other:
        return Uses(max(1, earlier_uses(tasks)), content)
    path = _folder() / f"{hashlib.sha256(f'{content} {model} {other}'.encode()).hexdigest()[:32]}.json"
    if known := _read(path):
        return Uses(known["number"], content)
    number = 1 + earlier_uses(tasks)
    try:
        write_record(path, {"number": number, "sha256": content, "model": model, "asked": sorted(_asked(tasks))})
    except (OSError, DiskError) as error:
        note(f"uses of the test rows cannot be counted in {path.parent}: {error}")
    return Uses(number, content)


def earlier_uses(tasks: Sequence[Task]) -> int:
    """How many models have been tested on these rows; asking is no use."""
    asked = _asked(tasks)
    return sum(_is_same(asked, set(one["asked"])) for one in _records(_folder()))


def _folder() -> Path:
    return cache_folder() / FOLDER


def _asked(tasks: Sequence[Task]) -> set[int]:
    """Hashes of what the tasks ask, or of their texts if they do not say; case and punctuation do not matter."""
    texts = [" ".join(item) for task in tasks for item in task.items or zip(*task.texts.values(), strict=False)]
    return {int(one) for one in forms(pa.array(texts, pa.large_string()))[-1]}


def _is_same(one: set[int], other: set[int]) -> bool:
    return bool(one and other) and len(one & other) > SAME * min(len(one), len(other))


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        if found := _read(path):
            yield found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_record(path, "") if path.is_file() else None
    except DamagedFile:
        note(f"{path} is damaged and is not counted")
        return None
