"""The answers of an endpoint, kept as they arrive: none is paid for twice, and every token is counted."""

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from sentloom.writing.writer import Written

ANSWERS = "answers.jsonl"  # in the ledger
MILLION = 1_000_000
MOST_TOKENS = 100_000_000  # of a request: a greater count is wrong, and need not fit into the ledger
PRINTED_LIST = r"^\[\{'(type|text)': "  # what earlier versions made of a text in parts
UNSTORABLE = re.compile(rf"[\0\ud800-\udfff]|{PRINTED_LIST}")
Reason = Literal[
    "no chat completion",
    "a text with a lone surrogate, NUL or printed list",
    "more than 4 MB",
    "compressed, which was not asked for",
    "token counts",
    "stored by an earlier version",
    "no token probabilities",
]
NO_COMPLETION, BAD_TEXT, TOO_LONG, COMPRESSED, BAD_COUNTS, STORED, NO_CHANCE = Reason.__args__  # type: ignore[attr-defined]


def storable(text: str) -> str:
    """The text; an error if a ledger cannot hold it, or if it is no text."""
    if UNSTORABLE.search(text):
        raise ValueError(BAD_TEXT)
    return text


Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Answer(_Row):
    key: str
    text: Annotated[str, AfterValidator(storable)]
    finished: bool
    tokens_read: Count
    tokens_written: Count
    chance: Annotated[float | None, Field(ge=0, le=1)] = None


class _Lost(_Row):
    lost: Count
    unusable: Reason | None = None


class _Prices(_Row):
    prices: Annotated[list[Price], Field(min_length=2, max_length=2)]


_ROW = TypeAdapter[_Answer | _Lost | _Prices](_Answer | _Lost | _Prices)
_COUNT = TypeAdapter[int](Annotated[Count, Field(strict=True)])


class Usage(NamedTuple):
    """Tokens of all requests: read, written, and the most that requests without an answer can have cost."""

    read: int = 0
    written: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


class Prices(NamedTuple):
    """What a million tokens cost, in whatever currency."""

    read: float = 0.0
    written: float = 0.0

    def cost(self, used: Usage) -> float:
        """What these tokens cost at most: nobody knows which of the lost ones were written."""
        return (self.read * used.read + self.written * used.written + max(self) * used.lost) / MILLION


UNKNOWN = Prices()


class Answers:
    """One line per answer, written when it arrives.

    A line that a kill cuts off is ignored. An answer that cannot be used, as earlier versions kept them, is counted
    and not known, so that it is asked for again.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._known: dict[str, Written] = {}
        self._dropped: set[str] = set()
        self._lost = 0
        self.unusable = Counter[str]()  # answers by reason
        self.prices = UNKNOWN  # or those that were given last
        for line in path.read_text("ascii", "replace").splitlines() if path.exists() else ():
            self._read(line)

    def get(self, key: str) -> Written | None:
        """The answer to a request, if it has arrived before."""
        return self._known.get(key)

    def add(self, key: str, answer: Written) -> None:
        """Keep an answer."""
        values = {name: value for name, value in asdict(answer).items() if value is not None}
        self._append({"key": key, **values})
        self._known[key] = answer

    def lose(self, tokens: int, unusable: Reason | None = None) -> None:
        """Count what a request without an answer, or with an unusable one, may have cost."""
        row = _Lost(lost=tokens, unusable=unusable)
        self._append(row.model_dump(exclude_none=True))
        with self._lock:
            self._count(row)

    def set_prices(self, prices: Prices) -> None:
        """Keep the prices, so that filtering again still knows the cost."""
        if prices != self.prices:
            self._append({"prices": prices})
            self.prices = prices

    @property
    def dropped(self) -> int:
        """How many stored answers cannot be used and have not been answered again."""
        return len(self._dropped - self._known.keys())

    @property
    def usage(self) -> Usage:
        """The tokens of all requests so far."""
        known = self._known.values()
        read, written = sum(answer.tokens_read for answer in known), sum(answer.tokens_written for answer in known)
        return Usage(read, written, self._lost)

    @property
    def cost(self) -> float:
        """What they cost at most, at the prices that were given."""
        return self.prices.cost(self.usage)

    def _append(self, values: dict[str, Any]) -> None:
        """The line break comes first, too: the line before may have been cut off."""
        with self._lock, self._path.open("a", encoding="ascii") as file:
            file.write(f"\n{json.dumps(values)}\n")

    def _read(self, line: str) -> None:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            return
        try:
            row = _ROW.validate_python(values)
        except ValidationError:
            self._drop(values)
            return
        if isinstance(row, _Answer):
            self._known[row.key] = Written(row.text, row.finished, row.tokens_read, row.tokens_written, row.chance)
        elif isinstance(row, _Lost):
            self._count(row)
        else:
            self.prices = Prices(*row.prices)

    def _count(self, row: _Lost) -> None:
        self._lost += row.lost
        self.unusable.update([row.unusable] if row.unusable else [])

    def _drop(self, values: object) -> None:
        """Count an unusable answer, and its tokens as far as their counts are usable."""
        if not isinstance(values, dict) or "key" not in values:
            return
        self._dropped.add(str(values["key"]))
        self.unusable[STORED] += 1
        for name in ("tokens_read", "tokens_written"):
            with suppress(ValidationError):
                self._lost += _COUNT.validate_python(values.get(name))
