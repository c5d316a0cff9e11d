"""What every maker of views is: something with an identity that turns texts into views, one by one."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol


class Maker(Protocol):
    """Makes one view a text. The view depends on the identity and the text alone, never on the company."""

    @property
    def identity(self) -> str:
        """Everything that a view depends on but the text: models by their hash, settings, seed."""

    @property
    def shard(self) -> int:
        """How many views are kept at a time: what a kill can cost, some seconds to a minute of work."""

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """The views of the texts, in their order."""


def seed_for(seed: int, text: str) -> int:
    """A seed of 63 bits for one text, so that chance depends on neither order nor batch."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {text}".encode(), digest_size=8).digest()) >> 1
