"""What is read at most, and how many unusable rows are tolerated. docs/data.md has these numbers in a table."""

from dataclasses import dataclass

LONGEST = 10_000_000  # bytes of a line, characters of a CSV record or of a cell
ENDLESS = 1_000_000_000  # bytes without a line end, after which reading stops
MOST_COLUMNS = 10_000
LONGEST_NAME = 1_000  # characters of a column's name
MOST_FILES = 10_000  # in a folder or a zip file
MOST_FACTS = 10_000_000  # bytes of the list of files: a zip file's directory, a saved data set's state.json
# Compressed data may unpack to MOST_UNPACKED bytes, and beyond FREE_UNPACKED to at most MOST_RATIO times their size.
FREE_UNPACKED = 100_000_000
MOST_RATIO = 200
MOST_UNPACKED = 1_000_000_000_000
BATCH_BYTES = 64_000_000  # of parquet and Arrow data, unpacked at a time
SHOWN_NAMES = 20  # columns or kinds of problems in a message
SHOWN_LENGTH = 60  # characters of a name in a message


@dataclass(frozen=True)
class Allowance:
    """How many rows may be unusable: a share of all, or a number where that is more. Above it, the data are refused.

    With `repair`, what has only one sensible reading is repaired: NUL characters, Windows-1252, UTF-16, stray commas.
    """

    share: float = 0.0
    rows: int = 0
    repair: bool = False

    def most(self, rows: int) -> int:
        """Of so many rows."""
        return max(self.rows, int(self.share * rows))


STRICT = Allowance()
FITTING = Allowance(0.05, 10)
CLEANING = Allowance(0.5, 10, repair=True)


def packed_room(size: int) -> int:
    """How many bytes compressed data of a size may unpack to."""
    return min(MOST_UNPACKED, max(FREE_UNPACKED, MOST_RATIO * size))


def shown(name: str) -> str:
    """A name in a message."""
    return name if len(name) <= SHOWN_LENGTH else f"{name[:SHOWN_LENGTH]}..."


def listed(names: tuple[str, ...] | list[str]) -> str:
    """Names in a message: the first of them, and how many more there are."""
    more = len(names) - SHOWN_NAMES
    return ", ".join(map(shown, names[:SHOWN_NAMES])) + (f" and {more:,} more" if more > 0 else "")
