"""A synthesis for the terminal: what each filter dropped, the distribution of scores, and random samples."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from sentloom.report.tables import plain_table
from sentloom.writing.filters import REASONS
from sentloom.writing.summary import BINS, SCORE, Sample, Summary

SHOWN = 5  # samples of each kind, kept and dropped
ROWS = 10  # of the histogram
WIDTH = 24  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉█"


def synthesis(summary: Summary) -> list[RenderableType]:
    """Yields, scores and samples."""
    tables = [_yields(summary), _scores(summary)]
    for kind, one in summary.kinds.items():
        tables += [_samples(f"{kind}: kept", one.kept_samples), _samples(f"{kind}: dropped", one.dropped_samples)]
    return [*tables, _outcome(summary)]


def _yields(summary: Summary) -> RenderableType:
    """One row per filter, in the order in which they are applied: candidates and their share, by kind."""
    kinds = summary.kinds
    of = "" if summary.sources == summary.raw_rows else f" of {summary.raw_rows:,}"
    title = f"Synthesis: {summary.sources:,}{of} sources; {summary.least_score[1]}"
    table = plain_table(title, "", *(cell for kind in kinds for cell in (kind, "")), numbers=2 * len(kinds))
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
    table = plain_table(SCORE.capitalize(), "score", *counts)
    for row in reversed(range(ROWS)):
        cells = [Text(f"{bar(of_kind[row] / most)} {of_kind[row]:,}") for of_kind in counts.values()]
        table.add_row(f"{row / ROWS:.1f} to {(row + 1) / ROWS:.1f}", *cells)
    return table


def bar(share: float, width: int = WIDTH) -> str:
    """A bar in eighths of a character; anything above 0 is visible."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).strip()


def _samples(title: str, samples: Sequence[Sample]) -> RenderableType:
    if not samples:
        return Text(f"{title}: none")
    table = plain_table(title, "score", *(["why"] if samples[0].reason else []), "source", "written")
    for one in samples[:SHOWN]:
        why = [one.reason] if one.reason else []
        table.add_row(*map(Text, (f"{one.score:.3f}", *why, one.source, one.text)))
    return table


def _outcome(summary: Summary) -> RenderableType:
    share = summary.triplets / max(1, summary.sources)
    return Text(f"{summary.triplets:,} triplets ({share:.2f} per source); {summary.pairs:,} pairs")
