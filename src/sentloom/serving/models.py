"""The models that are served, each with a probe that shows whether it still computes what it did, and the corpus.

A corpus is the texts that requests search, with the vectors that each model gives them.
"""

import os
import re
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sentloom.classify.classifier import Classifier, has_classifiers
from sentloom.classify.classifier import load as load_classifiers
from sentloom.encoder import Encoder
from sentloom.encoder.golden import read_golden
from sentloom.encoder.locate import locate
from sentloom.encoder.tokens import Role, prompt_for
from sentloom.errors import InputError, ModelError
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.system import Index
from sentloom.serving.batcher import Tokens, Vectors
from sentloom.serving.schema import FoundText

PROBE = "The quick brown fox jumps over the lazy dog."
SHARES = 16  # of the largest batch: how many sizes run before the first request
SAME = 0.999  # the least cosine of a probe's vector with the expected one, in float32
SAME_BF16 = 0.99
READ = 1 << 18  # characters of a text that are tokenised at most, however many tokens the model takes
NAMED = re.compile(r"([\w.-]+)=(.+)")


class Tokenised(NamedTuple):
    """Texts as token ids, and the positions of those that were truncated."""

    ids: list[Tokens]
    truncated: list[int]

    @property
    def tokens(self) -> int:
        """All tokens, with special tokens and prompts."""
        return sum(map(len, self.ids))

    def __add__(self, later: "Tokenised") -> "Tokenised":  # type: ignore[override]
        """Both, one after the other."""
        return Tokenised(self.ids + later.ids, self.truncated + [len(self.ids) + at for at in later.truncated])


@dataclass(frozen=True)
class Probe:
    """A text, the vector that it must get, and the least cosine with it."""

    text: str
    vector: Vectors  # (d,)
    least: float = SAME

    def cosine(self, vector: Vectors) -> float:
        """The cosine of a vector with the expected one; 0 if it is not finite."""
        lengths = float(np.linalg.norm(vector) * np.linalg.norm(self.vector))
        return float(vector @ self.vector) / lengths if np.isfinite(vector).all() and lengths else 0.0


@dataclass(frozen=True)
class ServedModel:
    """An encoder under the name that requests use."""

    name: str
    encoder: Encoder
    probe: Probe
    created: int = field(default_factory=lambda: int(time.time()))
    classifiers: tuple[Classifier, ...] = ()

    def tokenize(self, texts: Sequence[str], role: Role) -> Tokenised:
        """Token ids of texts, and which texts were truncated."""
        ids, truncated = self.encoder.tokens.truncate(texts, prompt_for(self.encoder.prompts, role), READ)
        return Tokenised([array("i", tokens) for tokens in ids], truncated)

    def encode(self, ids: Sequence[Sequence[int]]) -> Vectors:
        """Vectors (n, d) of one batch, in the calling thread."""
        with self.encoder.computing():
            vectors: Vectors = self.encoder(ids).float().cpu().numpy()
        return vectors


def load_models(names: Sequence[str], device: str | None = None, precision: str | None = None) -> list[ServedModel]:
    """Load models given as MODEL or NAME=MODEL."""
    served = [split_name(argument) for argument in names]
    for name in {name for name, _ in served if [other for other, _ in served].count(name) > 1}:
        fix = f"name them: {name}-1=FOLDER {name}-2=OTHER"
        raise InputError("MODEL", f"two models are called {name!r}", "different names", fix)
    return [_with_classifiers(_load(name, model, device, precision), model) for name, model in served]


def _with_classifiers(served: ServedModel, model: str) -> ServedModel:
    """The model with the classifiers in its folder, if there are any."""
    folder = locate(model)
    known = load_classifiers(folder, served.encoder.dimension) if has_classifiers(folder) else ()
    return replace(served, classifiers=known)


def split_name(argument: str) -> tuple[str, str]:
    """The name and the model of NAME=MODEL; of a folder alone, the name of the folder.

    >>> split_name("fitted=runs/model"), split_name("runs/model/"), split_name("embedded")
    (('fitted', 'runs/model'), ('model', 'runs/model/'), ('embedded', 'embedded'))
    """
    path = Path(argument)
    if not path.exists() and (named := NAMED.fullmatch(argument)):
        return named[1], named[2]
    return path.resolve().name if path.is_dir() or argument.endswith("/") else argument, argument


def _load(name: str, model: str, device: str | None, precision: str | None) -> ServedModel:
    encoder = Encoder.load(model, device=device, precision=precision)  # type: ignore[arg-type]
    least = SAME_BF16 if encoder.precision == "bf16" else SAME
    golden = read_golden(locate(model))
    if golden is None:  # a model that another tool saved: what it gives now is what it must give later
        return ServedModel(name, encoder, Probe(PROBE, encoder.encode(PROBE), least))
    checked = golden.check(encoder)
    reached = checked.mean if encoder.precision == "bf16" else golden.reached(checked)
    if reached < min(least, golden.required):
        problem = f"its vectors are not those it was saved with: cosine {reached:.5f}, least for {checked.furthest!r}"
        raise ModelError(model, problem, f"at least {min(least, golden.required)}", "save or export the model again")
    at = next(at for at, text in enumerate(golden.texts) if text.strip())
    return ServedModel(name, encoder, Probe(golden.texts[at], golden.vectors[at], min(least, golden.required)))


def tokenise_in_own_threads() -> None:
    """Turn off the pool of threads that the tokenizers library shares: a small request would wait for large ones."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def warm_up(models: Sequence[ServedModel], executor: Executor, workers: int, tokens: int) -> None:
    """Run batches of all magnitudes, the largest first, in all workers at once.

    Weights are then laid out, kernels compiled, and memory is at its peak before the first request.
    """
    for model in models:
        (text,) = model.tokenize([PROBE], "symmetric").ids
        most = max(1, tokens // len(text))
        for count in (most * share // SHARES for share in range(SHARES, 0, -1)):
            batch = [text] * max(1, count)
            for done in [executor.submit(model.encode, batch) for _ in range(workers)]:
                done.result()


@dataclass(frozen=True)
class ServedReranker:
    """A cross-encoder under the name that requests use."""

    name: str
    model: CrossEncoder

    @classmethod
    def load(cls, argument: str) -> "ServedReranker":
        """Load a re-ranker given as MODEL or NAME=MODEL."""
        name, model = split_name(argument)
        return cls(name, CrossEncoder.load(model))

    def score(self, query: str, texts: Sequence[str]) -> Vectors:
        """The logit of each text, in the calling thread."""
        return self.model.score([(query, text) for text in texts])


@dataclass(frozen=True)
class Corpus:
    """Texts, where each came from, and what searches them, by the name of a model."""

    texts: Sequence[str]
    place: Callable[[int], str]
    indexes: Mapping[str, Index]

    def search(self, model: str, queries: Sequence[str], vectors: Vectors, k: int) -> list[list[FoundText]]:
        """The k best texts for each query."""
        rows, scores = self.indexes[model].find(queries, vectors, k)
        return [
            [self._found(int(row), float(score)) for row, score in zip(*nearest, strict=True)]
            for nearest in zip(rows, scores, strict=True)
        ]

    def _found(self, row: int, score: float) -> FoundText:
        return FoundText(row=row, place=self.place(row), score=round(score, 6), text=self.texts[row])
