"""The protocol of view makers, which turn texts into views one by one."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol


class Maker(Protocol):
    """Makes one view per text. A view depends only on the maker's identity and the text, never on the batch."""

    @property
    def identity(self) -> str:
        """Everything besides the text that a view depends on: hashes of models, settings, seed."""

    @property
    def shard(self) -> int:
        """How many views are cached at a time; an interrupted run loses at most this many."""

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the views of the texts, in the same order."""


def seed_for(seed: int, text: str) -> int:
    """Derive a 63-bit seed for one text, so that sampling does not depend on order or batch."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {text}".encode(), digest_size=8).digest()) >> 1
