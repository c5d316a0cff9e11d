"""A synthesis for the terminal: what each filter dropped, the distribution of scores, and random samples."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from sentloom.report.tables import plain_table
from sentloom.writing.answers import BAD_COUNTS, NO_CHANCE
from sentloom.writing.filters import REASONS
from sentloom.writing.triplets import BINS, Sample, Summary

SHOWN = 5  # samples of each kind, kept and dropped
ROWS = 10  # of the histogram
WIDTH = 24  # characters of the longest bar
MOST_SHOWN = 160  # characters of a sample
EIGHTHS = " ▏▎▍▌▋▊▉█"
NOTHING = (
    "Nothing was kept. The dropped samples show why: loosen --filters, or choose a --writer that is larger or was "
    "trained for this."
)


def synthesis(summary: Summary) -> list[RenderableType]:
    """Yields, scores and samples."""
    tables = [_yields(summary), _scores(summary)]
    tables += [_relevance(tally.relevance) for tally in summary.kinds.values() if tally.relevance]
    for kind, tally in summary.kinds.items():
        tables += [_samples(f"{kind}: kept", tally.kept_samples), _samples(f"{kind}: dropped", tally.dropped_samples)]
    return [*tables, *map(Text, _outcome(summary))]


def _yields(summary: Summary) -> RenderableType:
    """One row per filter, in the order in which they are applied: candidates and their share, by kind."""
    kinds, tallies = summary.kinds, list(summary.kinds.values())
    of = "" if summary.sources == summary.raw_rows else f" of {summary.raw_rows:,}"
    title = f"Synthesis: {summary.sources:,}{of} sources; {summary.least_score[1]}"
    table = plain_table(title, "", *(cell for kind in kinds for cell in (kind, "")), numbers=2 * len(kinds))
    table.min_width = len(title)
    rows = {"written": [tally.written for tally in tallies], "kept": [tally.kept for tally in tallies]}
    for reason in REASONS:
        if any(reason in tally.dropped for tally in tallies):
            rows[f"dropped: {reason}"] = [tally.dropped.get(reason, 0) for tally in tallies]
    for name, counts in rows.items():
        shares = [count / max(1, tally.written) for count, tally in zip(counts, tallies, strict=True)]
        cells = [cell for pair in zip(counts, shares, strict=True) for cell in (f"{pair[0]:,}", f"{pair[1]:.1%}")]
        table.add_row(name, *cells, style="bold" if name == "kept" else "")
    return table


def _scores(summary: Summary) -> RenderableType:
    """Bars of candidates by score and kind, all on one scale."""
    kinds, starts = summary.kinds, range(0, BINS, BINS // ROWS)
    counts = {kind: [sum(tally.histogram[at : at + starts.step]) for at in starts] for kind, tally in kinds.items()}
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
    shown = [(name, cell) for name, cell in CELLS.items() if any(cell(sample) for sample in samples)]
    table = plain_table(title, *(name for name, _ in shown))
    for sample in samples[:SHOWN]:
        table.add_row(*(Text(cell(sample)) for _, cell in shown))
    return table


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


CELLS: dict[str, Callable[[Sample], str]] = {
    "score": lambda sample: f"{sample.score:.3f}",
    "cross-encoder": lambda sample: "" if sample.cross_encoder is None else f"{sample.cross_encoder:.1f}",
    "why": lambda sample: sample.reason,
    "style": lambda sample: sample.style,
    "source": lambda sample: _short(sample.source),
    "written": lambda sample: _short(sample.text),
}


def _outcome(summary: Summary) -> list[str]:
    """What came of it, what it cost, and what to do if nothing did."""
    rows = [f"{summary.triplets:,} triplets"] * ("contradiction" in summary.kinds) + [f"{summary.pairs:,} pairs"]
    lines = [f"{' and '.join(rows)} from {summary.sources:,} sources"]
    counted = {kind: (tally.tokens_read, tally.tokens_written) for kind, tally in summary.kinds.items()}
    used = [f"{kind} {read:,} read, {written:,} written" for kind, (read, written) in counted.items() if read + written]
    if used:
        lines.append(f"tokens of the writer: {'; '.join(used)}")
    if summary.endpoint_tokens:
        cost = f", at most {summary.endpoint_cost:,.2f} at your prices" if summary.endpoint_cost else ""
        lines.append(f"tokens of all requests to the endpoint: {summary.endpoint_tokens:,}{cost}")
    remarks = (BAD_COUNTS, NO_CHANCE)
    unusable = {reason: count for reason, count in summary.unusable.items() if reason not in remarks}
    if unusable:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in unusable.items())
        lines.append(f"{sum(unusable.values()):,} answers were unusable: {reasons}")
    if uncounted := summary.unusable.get(BAD_COUNTS):
        lines.append(f"{uncounted:,} answers had unusable token counts: the most that they can have cost is counted")
    if hard := summary.unusable.get(NO_CHANCE):
        lines.append(f"{hard:,} judgements came without token probabilities: they are 1 or 0, and no threshold matters")
    if summary.sources and not summary.triplets + summary.pairs:
        lines.append(NOTHING)
    return lines
