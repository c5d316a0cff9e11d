"""Limits on what is read, and how many unusable rows are tolerated. docs/data.md lists these numbers."""

from dataclasses import dataclass

BLOCK = 1 << 18  # bytes read at a time: the strings of a block stay in the processor's cache
LONGEST = 10_000_000  # bytes per line, characters per CSV record or cell
ENDLESS = 1_000_000_000  # bytes without a line break after which reading stops
MOST_COLUMNS = 10_000
LONGEST_NAME = 1_000  # characters per column name
MOST_FILES = 10_000  # in a zip file
MOST_DOCUMENTS = 1_000_000  # in a folder and those below it
MOST_FACTS = 10_000_000  # bytes of a list of files: a zip file's directory, a saved data set's state.json
# Compressed data may unpack to MOST_UNPACKED bytes; beyond FREE_UNPACKED, to at most MOST_RATIO times their size.
FREE_UNPACKED = 100_000_000
MOST_RATIO = 200
MOST_UNPACKED = 1_000_000_000_000
BATCH_BYTES = 64_000_000  # of parquet and Arrow data to unpack at a time
SHOWN_NAMES = 20  # columns or kinds of problems in a message
SHOWN_LENGTH = 60  # characters of a name in a message


@dataclass(frozen=True)
class Allowance:
    """How many rows may be unusable (a share or a number, whichever is more), and how much is read.

    `repair` fixes what has only one plausible reading: NUL characters, Windows-1252, UTF-16, stray commas.
    """

    share: float = 0.0
    rows: int = 0
    repair: bool = False
    longest: int = LONGEST
    free_unpacked: int = FREE_UNPACKED
    block: int = BLOCK

    def most(self, rows: int) -> int:
        """Return how many of `rows` rows may be unusable."""
        return max(self.rows, int(self.share * rows))


STRICT = Allowance()
FITTING = Allowance(0.05, 10)
CLEANING = Allowance(0.5, 10, repair=True)


def packed_room(size: int, free: int = FREE_UNPACKED) -> int:
    """Return how many bytes compressed data of this size may unpack to."""
    return min(MOST_UNPACKED, max(free, MOST_RATIO * size))


def shown(name: str) -> str:
    """Shorten a name for a message."""
    return name if len(name) <= SHOWN_LENGTH else f"{name[:SHOWN_LENGTH]}..."


def listed(names: tuple[str, ...] | list[str]) -> str:
    """List names in a message: the first few, and how many more there are."""
    more = len(names) - SHOWN_NAMES
    return ", ".join(map(shown, names[:SHOWN_NAMES])) + (f" and {more:,} more" if more > 0 else "")
