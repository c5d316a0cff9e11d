"""Encoders that are only read: loaded once per process, and shared by all who score, compare or hash them.

A fit asks for its base and for each trained model dozens of times. Loading one again costs a third of a second for a
small model. Whoever trains an encoder, or changes anything about it, loads its own with `Encoder.load`.
"""

from collections import OrderedDict
from collections.abc import Hashable
from pathlib import Path

from sentloom.encoder.device import device_for, precision_for
from sentloom.encoder.encoder import Encoder
from sentloom.encoder.locate import READ_ONLY, locate
from sentloom.encoder.prompts import Prompts


class SharedEncoders:
    """At most so many encoders, whose weights have at most so many bytes together; the least recently used go first."""

    def __init__(self, most: int = 12, most_bytes: int = 1_500_000_000) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.loaded: OrderedDict[Hashable, Encoder] = OrderedDict()  # the least recently used first
        self.bytes: dict[Hashable, int] = {}  # of the weights of each

    def __call__(
        self,
        name: str | Path,
        *,
        pooling: str | None = None,
        prompts: Prompts | None = None,
        max_length: int | None = None,
    ) -> Encoder:
        """The encoder that `Encoder.load` gives, which nobody may change; its fingerprint is computed once."""
        prompted = None if prompts is None else tuple(sorted(prompts.items()))
        key = (str(name), _files(name), pooling, prompted, max_length, str(device_for()), precision_for())
        if key not in self.loaded:
            encoder = Encoder.load(name, pooling=pooling, prompts=prompts, max_length=max_length)
            encoder.known_fingerprint = encoder.fingerprint()
            self.loaded[key] = encoder
            self.bytes[key] = sum(weight.nbytes for weight in encoder.parameters())
        self.loaded.move_to_end(key)
        found = self.loaded[key]
        while len(self.loaded) > self.most or sum(self.bytes.values()) > self.most_bytes:
            oldest, _ = self.loaded.popitem(last=False)
            del self.bytes[oldest]
        return found


shared_encoder = SharedEncoders()


def _files(name: str | Path) -> Hashable:
    """What changes when a folder is written again: the files, their sizes, times and inodes."""
    if name in READ_ONLY:
        return ()
    stats = ((path, path.stat()) for path in sorted(locate(name).rglob("*")) if path.is_file())
    return tuple((str(path), one.st_size, one.st_mtime_ns, one.st_ino) for path, one in stats)
