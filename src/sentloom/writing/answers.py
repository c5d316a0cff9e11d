"""The answers of an endpoint, kept as they arrive: none is paid for twice, and every token is counted."""

import json
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from sentloom.writing.writer import Written

ANSWERS = "answers.jsonl"  # in the ledger
MILLION = 1_000_000


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
    """One line per answer, written when it arrives; a line that a kill cuts off is ignored."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._known: dict[str, Written] = {}
        self._lost = 0
        self.prices = UNKNOWN  # or those that were given last
        for line in path.read_text("ascii", "replace").splitlines() if path.exists() else ():
            self._read(line)

    def get(self, key: str) -> Written | None:
        """The answer to a request, if it has arrived before."""
        return self._known.get(key)

    def add(self, key: str, answer: Written) -> None:
        """Keep an answer."""
        self._append({"key": key, **asdict(answer)})
        self._known[key] = answer

    def lose(self, tokens: int) -> None:
        """Count what a request without an answer may have cost."""
        self._append({"lost": tokens})
        with self._lock:
            self._lost += tokens

    def set_prices(self, prices: Prices) -> None:
        """Keep the prices, so that filtering again still knows the cost."""
        if prices != self.prices:
            self._append({"prices": prices})
            self.prices = prices

    @property
    def usage(self) -> Usage:
        """The tokens of all requests so far."""
        known = self._known.values()
        return Usage(sum(one.tokens_read for one in known), sum(one.tokens_written for one in known), self._lost)

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
            if "key" in values:
                key = values.pop("key")
                self._known[key] = Written(**values)
            elif "prices" in values:
                self.prices = Prices(*map(float, values["prices"]))
            else:
                self._lost += int(values["lost"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return
