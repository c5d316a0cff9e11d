"""Which texts are known to be each other's positives, in any row of the data: they are not negatives of each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.data.batches import Batch, text_keys
from sentloom.data.dataset import Dataset

Keys = npt.NDArray[np.uint64]
ODD = np.uint64(0x9E3779B97F4A7C15)  # makes the hashes of (a, b) and (b, a) differ


@dataclass(frozen=True)
class KnownPairs:
    """The (anchor, positive) pairs of some rows, as sorted hashes: eight bytes for each pair."""

    hashes: Keys

    @classmethod
    def of_texts(cls, anchors: Sequence[str], positives: Sequence[str]) -> "KnownPairs":
        """The pairs of a batch."""
        return cls(np.unique(_pair(text_keys(anchors), text_keys(positives))))

    @classmethod
    def of_data(cls, data: Dataset) -> "KnownPairs":
        """The pairs of a data set of pairs or triplets."""
        parts = (batch.to_pydict() for batch in data.table.select(["anchor", "positive"]).to_batches())
        return cls(np.unique(np.concatenate([cls.of_texts(part["anchor"], part["positive"]).hashes for part in parts])))

    def among(self, anchors: Keys, others: Keys) -> npt.NDArray[np.bool_]:
        """(n,), (m,) -> (n, m): whether a text is a known positive of an anchor."""
        wanted = _pair(anchors[:, None], others[None, :])
        places = np.searchsorted(self.hashes, wanted)
        found: npt.NDArray[np.bool_] = np.append(self.hashes, self.hashes[:1])[places] == wanted
        return found

    def of_other_rows(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """(b, b): whether the second text of row j != i is a known positive of the first text of row i."""
        found = self.among(text_keys(batch.first), text_keys(batch.second))
        np.fill_diagonal(found, False)
        return found


def _pair(anchors: Keys, others: Keys) -> Keys:
    return anchors * ODD + others  # modulo 2**64
