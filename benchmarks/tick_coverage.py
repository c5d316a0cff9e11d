"""How often the interval of ticks is wrong, and how many ticks a gain takes: simulated answers with known labels.

    python benchmarks/tick_coverage.py [-o out/tick-coverage] [--simulations 1000]

A simulation draws queries, some of which have different first results, in three strata of equal size in which people
prefer the fitted model, the base, or neither with known probabilities. Ticks are taken in the order of
`sentloom.ticking.questions`, and `sentloom.ticking.estimate` is called as `sentloom tick` does. OUT/tables.md has the
tables. Planned for two minutes of one core.
"""

import argparse
import platform
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sentloom.evaluation.significance import corrected_level
from sentloom.files import new_file
from sentloom.ticking.estimate import Stratum, estimate
from sentloom.ticking.questions import turns
from sentloom.ticking.verdict import FIRST_LOOK, looks

STRATA = 3
FEWEST = 20  # different first results, below which nobody is asked


@dataclass(frozen=True)
class Design:
    """Models whose first results differ for a share of the queries; what people then say, in each stratum."""

    name: str
    share: float
    wins: tuple[float, float, float]  # the fitted model's result is preferred
    losses: tuple[float, float, float]

    @property
    def gain(self):
        """The true gain over all queries, in points."""
        return 100 * self.share * float(np.mean(np.subtract(self.wins, self.losses)))


SAME = (0.1, 0.25, 0.4), (0.3, 0.4, 0.5), (0.02, 0.05, 0.1)
DESIGNS = [
    *(
        Design(f"equal, {name}", share, wins, wins)
        for name, wins in zip(("answers vary", "nearly all clear", "nearly all undecided"), SAME, strict=True)
        for share in (0.3, 0.7)
    ),
    Design("a gain", 0.3, (0.2, 0.4, 0.6), (0.1, 0.2, 0.2)),
    Design("a gain", 0.7, (0.2, 0.4, 0.6), (0.1, 0.2, 0.2)),
    Design("a large gain", 0.5, (0.4, 0.6, 0.8), (0.05, 0.05, 0.05)),
    Design("equal, lopsided: rare losses where models disagree most", 0.5, (0.1, 0.1, 0.1), (0.02, 0.02, 0.26)),
]


@cache
def order(size):
    """The strata of the questions in the order in which they are asked about `size` queries."""
    sizes = tuple(len(part) for part in np.array_split(np.arange(size), STRATA))
    return sizes, np.array([stratum for stratum, _ in turns(sizes)])


def drawn(design, queries, draw):
    """The sizes of the strata, and the stratum and value of every question in the order in which they are asked."""
    sizes, strata = order(int(draw.binomial(queries, design.share)))
    chance = draw.random(len(strata))
    wins, losses = (np.array(some)[strata] for some in (design.wins, design.losses))
    return sizes, strata, (chance < wins).astype(float) - (chance > 1 - losses)


def ticked(sizes, strata, values, ticks, queries, level):
    """The estimate after `ticks` ticks."""
    strata, values = strata[:ticks], values[:ticks]
    found = [Stratum(size, tuple(values[strata == number])) for number, size in enumerate(sizes)]
    return estimate(found, queries, level)


# ---------------------------------------------------------------- tables


def coverage(simulations):
    """Coverage of the 95% interval after 30, 60 and 120 ticks."""
    for design in DESIGNS:
        for queries in (100, 1000):
            draw, cells = np.random.default_rng(queries), []
            for ticks in (30, 60, 120):
                found = [
                    ticked(*one, ticks, queries, 0.95)
                    for one in (drawn(design, queries, draw) for _ in range(simulations))
                    if len(one[1]) >= max(ticks, FEWEST)
                ]
                if len(found) < simulations / 2:
                    cells += ["", "", ""]
                    continue
                covered = np.mean([one.low <= design.gain <= one.high for one in found])
                high = np.mean([one.low > design.gain for one in found])
                width = np.mean([one.high - one.low for one in found]) / 2
                cells += [f"{100 * covered:.1f}", f"{100 * high:.1f}", f"{width:.1f}"]
            yield [design.name, f"{queries:,}", f"{design.share:.0%}", f"{design.gain:+.1f}", *cells]


def stopping(simulations):
    """Equal models called better at some time: at looks with corrected levels, and by looking after every 5 ticks."""
    for design in DESIGNS[:6:2]:
        draw, at_looks, often = np.random.default_rng(5), 0, 0
        for _ in range(simulations):
            one = drawn(design, 1000, draw)
            many = len(one[1])
            due = [ticks for ticks in looks(many) if ticks <= 240]
            at_looks += any(ticked(*one, ticks, 1000, corrected_level(use)).low > 0 for use, ticks in enumerate(due, 1))
            often += any(ticked(*one, ticks, 1000, 0.95).low > 0 for ticks in range(FIRST_LOOK, 241, 5))
        yield [design.name, *(f"{100 * count / simulations:.1f}" for count in (often, at_looks))]


def power(simulations, queries=1000):
    """How often a gain is called better, at a look or before, by the number of ticks."""
    for gain in (1, 2, 5):
        for share in (0.1, 0.2, 0.5):
            net = gain / 100 / share
            clear = (0.3, 0.5, 0.7)  # of the answers prefer one of the two
            if net > min(clear):
                clear = tuple(min(0.95, one + net) for one in clear)
            design = Design("", share, *(tuple((one + sign * net) / 2 for one in clear) for sign in (1, -1)))
            draw, first = np.random.default_rng(gain), []
            for _ in range(simulations):
                one = drawn(design, queries, draw)
                found = (
                    ticks
                    for use, ticks in enumerate(looks(len(one[1])), 1)
                    if ticked(*one, ticks, queries, corrected_level(use)).low > 0
                )
                first.append(next(found, np.inf))
            shares = [100 * np.mean(np.array(first) <= ticks) for ticks in (30, 60, 120, 240, 480)]
            possible = int(queries * share)
            cells = [
                f"{one:.0f}" if ticks <= 2 * possible else ""
                for one, ticks in zip(shares, (30, 60, 120, 240, 480), strict=True)
            ]
            everything = f"{100 * np.mean(np.isfinite(first)):.0f}"
            yield [f"+{gain}", f"{share:.0%}", f"{100 * (0.5 + net / 2 / np.mean(clear)):.0f}%", *cells, everything]


def table(title, head, rows):
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, default=Path("out/tick-coverage"))
    parser.add_argument("--simulations", type=int, default=1000)
    arguments = parser.parse_args()
    began, many = time.monotonic(), arguments.simulations
    parts = []
    each = [f"{what} {ticks}" for ticks in (30, 60, 120) for what in ("covered", "too high", "half width")]
    for title, head, rows in (
        (
            f"Coverage after 30, 60 and 120 ticks, {many} simulations",
            ["", "queries", "differ", "gain", *each],
            coverage(many),
        ),
        (f"Equal models called better, {many} simulations", ["", "looking every 5 ticks", "at looks"], stopping(many)),
        (
            f"A gain called better, of 1,000 queries, {many} simulations",
            ["gain", "differ", "preferred, of clear answers", "30 ticks", "60", "120", "240", "480", "all"],
            power(many),
        ),
    ):
        parts.append(table(title, head, rows))
        print(parts[-1], "\n", flush=True)
    text = "\n\n".join([*parts, f"{platform.machine()}, {time.monotonic() - began:.0f} seconds"])
    with new_file(arguments.out / "tables.md") as part:
        part.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
