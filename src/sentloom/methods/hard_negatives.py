"""The hard negatives of a row: from rows with more than are wanted, some are sampled at each step."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def sample_negatives(given: Sequence[str], wanted: int, random: np.random.Generator) -> list[str]:
    """As many of the given texts as are wanted, in order; "" where there are fewer."""
    chosen = [given[place] for place in sample_places(len(given), wanted, random)]
    return [*chosen, *[""] * (wanted - len(chosen))]


def sample_places(count: int, wanted: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Sorted places of a sample of `wanted` among `count` texts, or of all of them."""
    if count <= wanted:
        return np.arange(count)
    return np.sort(random.choice(count, wanted, replace=False))
