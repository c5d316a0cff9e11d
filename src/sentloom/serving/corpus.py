"""The texts that are searched, with the vectors that each model gives them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sentloom.search.nearest import top_k
from sentloom.serving.batcher import Vectors
from sentloom.serving.schema import FoundText


@dataclass(frozen=True)
class Corpus:
    """Texts, where each came from, and their vectors (n, d) by the name of a model."""

    texts: Sequence[str]
    place: Callable[[int], str]
    vectors: Mapping[str, Vectors]

    def search(self, model: str, queries: Vectors, k: int) -> list[list[FoundText]]:
        """The k texts nearest to each query."""
        rows, cosines = top_k(queries, self.vectors[model], k)
        return [
            [self._found(int(row), float(cosine)) for row, cosine in zip(*one, strict=True)]
            for one in zip(rows, cosines, strict=True)
        ]

    def _found(self, row: int, score: float) -> FoundText:
        return FoundText(row=row, place=self.place(row), score=round(score, 6), text=self.texts[row])
