"""A synthesis for the terminal: what each filter dropped, the distribution of scores, and random samples."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from sentloom.report.tables import plain_table
from sentloom.writing.answers import BAD_COUNTS
from sentloom.writing.filters import REASONS
from sentloom.writing.triplets import BINS, Sample, Summary

SHOWN = 5  # samples of each kind, kept and dropped
ROWS = 10  # of the histogram
WIDTH = 24  # characters of the longest bar
MOST_SHOWN = 160  # characters of a sample
EIGHTHS = " ▏▎▍▌▋▊▉█"


def synthesis(summary: Summary) -> list[RenderableType]:
    """Yields, scores and samples."""
    tables = [_yields(summary), _scores(summary)]
    tables += [_relevance(one.relevance) for one in summary.kinds.values() if one.relevance]
    for kind, one in summary.kinds.items():
        tables += [_samples(f"{kind}: kept", one.kept_samples), _samples(f"{kind}: dropped", one.dropped_samples)]
    return [*tables, *map(Text, _outcome(summary))]


def _yields(summary: Summary) -> RenderableType:
    """One row per filter, in the order in which they are applied: candidates and their share, by kind."""
    kinds = summary.kinds
    of = "" if summary.sources == summary.raw_rows else f" of {summary.raw_rows:,}"
    title = f"Synthesis: {summary.sources:,}{of} sources; {summary.least_score[1]}"
    table = plain_table(title, "", *(cell for kind in kinds for cell in (kind, "")), numbers=2 * len(kinds))
    table.min_width = len(title)
    rows = {"written": [one.written for one in kinds.values()], "kept": [one.kept for one in kinds.values()]}
    for reason in REASONS:
        if any(reason in one.dropped for one in kinds.values()):
            rows[f"dropped: {reason}"] = [one.dropped.get(reason, 0) for one in kinds.values()]
    for name, counts in rows.items():
        shares = [count / max(1, one.written) for count, one in zip(counts, kinds.values(), strict=True)]
        cells = [cell for pair in zip(counts, shares, strict=True) for cell in (f"{pair[0]:,}", f"{pair[1]:.1%}")]
        table.add_row(name, *cells, style="bold" if name == "kept" else "")
    return table


def _scores(summary: Summary) -> RenderableType:
    """Bars of candidates by score and kind, all on one scale."""
    kinds, step = summary.kinds, BINS // ROWS
    counts = {kind: [sum(one.histogram[at : at + step]) for at in range(0, BINS, step)] for kind, one in kinds.items()}
    most = max([1, *(count for of_kind in counts.values() for count in of_kind)])
    table = plain_table(summary.score.capitalize(), "score", *counts)
    for row in reversed(range(ROWS)):
        cells = [Text(f"{bar(of_kind[row] / most)} {of_kind[row]:,}") for of_kind in counts.values()]
        table.add_row(f"{row / ROWS:.1f} to {(row + 1) / ROWS:.1f}", *cells)
    return table


def _relevance(counts: Mapping[int, int]) -> RenderableType:
    """Bars of queries by the score of the cross-encoder, two points per row."""
    table = plain_table("Queries by score of the cross-encoder", "score", "query")
    rows = {start: counts.get(start, 0) + counts.get(start + 1, 0) for start in range(-12, 12, 2)}
    rows[-12] += sum(count for score, count in counts.items() if score < -12)
    rows[10] += sum(count for score, count in counts.items() if score >= 12)
    for start, count in reversed(rows.items()):
        name = "below -10" if start == -12 else "10 or more" if start == 10 else f"{start} to {start + 2}"
        table.add_row(name, Text(f"{bar(count / max(rows.values()))} {count:,}"))
    return table


def bar(share: float, width: int = WIDTH) -> str:
    """A bar in eighths of a character; anything above 0 is visible."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).strip()


def _samples(title: str, samples: Sequence[Sample]) -> RenderableType:
    """A column is left out if it would be empty."""
    if not samples:
        return Text(f"{title}: none")
    shown = [(name, cell) for name, cell in CELLS.items() if any(cell(one) for one in samples)]
    table = plain_table(title, *(name for name, _ in shown))
    for one in samples[:SHOWN]:
        table.add_row(*(Text(cell(one)) for _, cell in shown))
    return table


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


CELLS: dict[str, Callable[[Sample], str]] = {
    "score": lambda one: f"{one.score:.3f}",
    "cross-encoder": lambda one: "" if one.cross_encoder is None else f"{one.cross_encoder:.1f}",
    "why": lambda one: one.reason,
    "style": lambda one: one.style,
    "source": lambda one: _short(one.source),
    "written": lambda one: _short(one.text),
}


def _outcome(summary: Summary) -> list[str]:
    """What came of it, what it cost, and what to do if nothing did."""
    rows = [f"{summary.triplets:,} triplets"] * ("contradiction" in summary.kinds) + [f"{summary.pairs:,} pairs"]
    lines = [f"{' and '.join(rows)} from {summary.sources:,} sources"]
    counted = {kind: one for kind, one in summary.kinds.items() if one.tokens_read + one.tokens_written}
    if counted:
        of_kinds = (f"{kind} {one.tokens_read:,} read, {one.tokens_written:,} written" for kind, one in counted.items())
        lines.append(f"tokens of the writer: {'; '.join(of_kinds)}")
    if summary.endpoint_tokens:
        cost = f", at most {summary.endpoint_cost:,.2f} at your prices" if summary.endpoint_cost else ""
        lines.append(f"tokens of all requests to the endpoint: {summary.endpoint_tokens:,}{cost}")
    unusable = {reason: count for reason, count in summary.unusable.items() if reason != BAD_COUNTS}
    if unusable:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in unusable.items())
        lines.append(f"{sum(unusable.values()):,} answers were unusable: {reasons}")
    if uncounted := summary.unusable.get(BAD_COUNTS):
        lines.append(f"{uncounted:,} answers had unusable token counts: the most that they can have cost is counted")
    if summary.sources and not summary.triplets + summary.pairs:
        lines.append(NOTHING)
    return lines


NOTHING = (
    "Nothing was kept. The dropped samples show why: loosen --filters, or choose a --writer that is larger or was "
    "trained for this."
)
