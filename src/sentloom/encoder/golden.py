"""Golden vectors: what a model gave for some texts when it was saved, so that whatever runs it later can be compared.

They are in golden.safetensors in the model's folder: the vectors (n, d), and in its header the texts and the cosine
that the folder was proven to reach.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sentloom.encoder.model_files import find
from sentloom.errors import DamagedFile

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

Vectors = NDArray[np.float32]
FILE = "golden.safetensors"
EXACT = 0.99999  # the least cosine of vectors that differ by rounding only
LONG = ((0, 25), (25, 50), (50, 75), (75, 110), (0, 110))  # lines of golden.txt that make a long text together


@dataclass(frozen=True)
class Agreement:
    """The cosines between two sets of vectors of the same texts."""

    mean: float
    least: float
    furthest: str  # the text with the least cosine


@dataclass(frozen=True)
class Golden:
    """Texts and the vectors (n, d) that a model gave for them in the role "symmetric"."""

    texts: list[str]
    vectors: Vectors
    required: float = EXACT  # the cosine to reach: with every vector, or a smaller one on average (8-bit weights)

    def check(self, encoder: "Encoder") -> Agreement:
        """Compare an encoder's vectors with these."""
        return agreement(self.texts, encoder.encode(self.texts), self.vectors)

    def reached(self, agreement: Agreement) -> float:
        """The cosine of an agreement that counts: the least where only rounding may differ, else the mean."""
        return agreement.least if self.required >= EXACT else agreement.mean

    def holds(self, agreement: Agreement) -> bool:
        """Whether an agreement is as close as the folder was proven to be."""
        return self.reached(agreement) >= self.required


def golden_texts() -> list[str]:
    """About 120 texts: short and long ones, empty and blank ones, emoji, code, and many scripts."""
    lines = (files("sentloom.encoder") / "golden.txt").read_text("utf-8").splitlines()
    return ["", " ", "\n\n", "two\nlines\tand a tab", *lines, *(" ".join(lines[a:b]) for a, b in LONG)]


def make_golden(encoder: "Encoder") -> Golden:
    """The golden vectors of an encoder, in float32 whatever precision it runs in."""
    texts, precision = golden_texts(), encoder.precision
    encoder.precision = "fp32"
    try:
        return Golden(texts, encoder.encode(texts))
    finally:
        encoder.precision = precision


def write_golden(encoder: "Encoder", folder: Path) -> Golden:
    """Write the golden vectors of an encoder into its folder."""
    golden = make_golden(encoder)
    put_golden(golden, folder)
    return golden


def put_golden(golden: Golden, folder: Path) -> None:
    """Write golden vectors into a folder."""
    facts = json.dumps({"texts": golden.texts, "required": golden.required})
    # one entry: safetensors writes several in random order
    save_file({"vectors": golden.vectors}, folder / FILE, metadata={"facts": facts})


def read_golden(folder: Path) -> Golden | None:
    """Read the golden vectors of a model folder; None if it has none."""
    path = find(folder, FILE)
    if path is None:
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            facts, vectors = json.loads(file.metadata()["facts"]), file.get_tensor("vectors")
        golden = Golden(list(map(str, facts["texts"])), vectors, float(facts["required"]))
        whole = vectors.shape[:1] == (len(golden.texts),) and vectors.ndim == 2 and bool(np.isfinite(vectors).all())
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise DamagedFile(str(path), "the golden vectors are damaged", "", "delete the file, or save the model again")
    return golden


def agreement(texts: list[str], vectors: Vectors, expected: Vectors) -> Agreement:
    """The row-wise cosines of two sets of vectors; two zero vectors agree."""
    cosines = [_cosine(own, theirs) for own, theirs in zip(vectors, expected, strict=True)]
    at = int(np.argmin(cosines))
    return Agreement(float(np.mean(cosines)), cosines[at], texts[at])


def _cosine(left: Vectors, right: Vectors) -> float:
    a, b = left.astype(np.float64), right.astype(np.float64)
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / size) if size else float(not a.any() and not b.any())
