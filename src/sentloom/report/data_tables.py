"""Data for the terminal: what was read, inspected, cleaned, turned into views, mined or searched."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sentloom.data.corpus.docstrings import DocstringCorpus
from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.cleaning import CleanReport
from sentloom.data.hygiene.inspection import Distribution, Inspection
from sentloom.data.hygiene.leaks import Leaks
from sentloom.data.limits import listed
from sentloom.report.tables import plain_table

if TYPE_CHECKING:
    from sentloom.search.mining import MineReport

SHOWN_LABELS = 8
SHOWN_ROWS = 10  # leaks, or pairs of views
TEXT_WIDTH = 160  # characters of a text


def data_summary(name: str, data: Dataset) -> RenderableType:
    """What was read, and from which columns."""
    columns = ", ".join(data.used.values())
    if len(data.files) == 1 and data.files[0].startswith(f"{name}/"):
        name = data.files[0]  # the one file that was read from a zip file
    lines = [f"{len(data):,} rows ({columns})"]
    lines += [f"  {note}" for note in (*data.reading, *data.notes)]
    if data.ignored and not data.of_documents:  # which know their titles and headings without being told
        lines.append(f"  unused columns: {listed(data.ignored)}")
    if data.left_out:
        read = len(data) + data.left_out
        why = "; ".join(str(kind) for kind in data.irregular if not kind.repaired)
        lines.append(f"  {data.left_out:,} of {read:,} rows cannot be used and are left out: {why}")
    lines += [f"  skipped: {count:,} {what}" for what, count in data.skipped.items()]
    return Text.assemble(f"{name}: ", (str(data.shape), "bold"), ", ", "\n".join(lines))


def inspection(inspected: Inspection) -> RenderableType:
    """Lengths, duplicates, scripts, labels or scores, and problems."""
    lengths = plain_table("Lengths", "column", "unit", "min", "25%", "median", "75%", "95%", "max", numbers=6)
    for column in inspected.lengths:
        lengths.add_row(column.column, column.unit, *_spread(column.distribution))
    table = Table(title="Findings", title_justify="left", title_style="bold", show_header=False, box=SIMPLE_HEAD)
    for name, fact in _facts(inspected).items():
        table.add_row(name, Text(fact))
    problems = [
        Text.assemble(("! ", "yellow"), f"{problem.what}: {problem.rows:,} rows, first at {problem.example}")
        for problem in inspected.findings
    ]
    return Group(lengths, table, *(problems or [Text("no problems found")]))


def _facts(inspected: Inspection) -> dict[str, str]:
    near = inspected.near_duplicates
    of = "all rows" if near.whole else f"a sample of {near.sampled:,} rows"
    facts = {
        "duplicate rows": f"{inspected.duplicate_rows:,}",
        "duplicate sentences": f"{inspected.duplicate_sentences:,} of {inspected.sentences:,}",
        f"near-duplicates (Jaccard {near.threshold})": f"{near.repeats:,} in {of}",
        "scripts": ", ".join(f"{name} {share:.1%}" for name, share in inspected.scripts.items()),
    }
    if inspected.labels:
        facts["labels"] = _most(inspected.labels)
    if inspected.scores:
        facts["scores"] = f"{inspected.scores.least:g} to {inspected.scores.most:g}, mean {inspected.scores.mean:.3g}"
    return facts


def _spread(lengths: Distribution) -> list[str]:
    return [f"{x:,.0f}" for x in (lengths.least, lengths.p25, lengths.median, lengths.p75, lengths.p95, lengths.most)]


def _most(labels: Mapping[str, int]) -> str:
    parts = [f"{label} {count:,}" for label, count in list(labels.items())[:SHOWN_LABELS]]
    return ", ".join(parts) + (f" and {len(labels) - SHOWN_LABELS} more" if len(labels) > SHOWN_LABELS else "")


def leaks(leaked: Leaks) -> RenderableType:
    """How many evaluation sentences appear in the training data, and where."""
    head = (
        f"Leaks: {leaked.leaked_sentences:,} of {leaked.sentences:,} evaluation sentences and "
        f"{leaked.leaked_pairs:,} of {leaked.pairs:,} pairs appear in {len(leaked.training_rows):,} training rows"
    )
    table = plain_table(head, "kind", "evaluation", "training", "text")
    for leak in leaked.first[:SHOWN_ROWS]:
        table.add_row(leak.kind, *map(Text, (leak.evaluation, leak.training, leak.text[:80])))
    counts = ", ".join(f"{kind} {count:,}" for kind, count in leaked.counts.items())
    return Group(table, f"by kind: {counts}") if leaked.first else Text(head)


def cleaning(report: CleanReport) -> RenderableType:
    """What each rule changed or dropped."""
    table = plain_table(
        f"Cleaning: {report.rows_before:,} rows, {report.rows_after:,} kept", "rule", "effect", "rows", "why", "first"
    )
    for row in report.table():
        table.add_row(*map(Text, row))
    return table


def views(pairs: Dataset) -> RenderableType:
    """The first originals and views side by side, and what was skipped or counted."""
    left, right = pairs.used["anchor"], pairs.used["positive"]
    table = plain_table(f"Views: {len(pairs):,} pairs", left, right)
    first = pairs.take(range(min(SHOWN_ROWS, len(pairs))))
    for row in zip(first["anchor"], first["positive"], strict=True):
        table.add_row(*(Text(shortened(text)) for text in row))
    return Group(table, *(Text(f"{count:,} {what}") for what, count in pairs.skipped.items()))


def corpus(docstrings: DocstringCorpus) -> RenderableType:
    """What each package contributes to the embedded corpus."""
    columns = ("files", "sentences", "pairs")
    table = plain_table("Docstrings of the installed packages", "package", "part", *columns, numbers=3)
    for package in docstrings.packages:
        table.add_row(package.package, package.split, *(f"{getattr(package, name):,}" for name in columns))
    table.add_section()
    table.add_row("total", "", *(f"{sum(getattr(p, name) for p in docstrings.packages):,}" for name in columns))
    return Group(table, f"not installed: {', '.join(docstrings.missing)}") if docstrings.missing else table


def mining(report: "MineReport") -> RenderableType:
    """How many negatives were found, and why candidates were skipped."""
    absent = report.rows - report.kept
    without = f"; the other {absent:,} are not in the output" if absent else ""
    rejected = f", {report.rejected:,} scored too high by the teacher" if report.rejected else ""
    return Text(
        f"{report.rows:,} pairs, {report.kept:,} with hard negatives ({report.negatives:,} in total){without}; skipped "
        f"candidates: {report.known_right:,} known positives, {report.too_near:,} within the margin{rejected}"
    )


def answers(query: str, results: Sequence[tuple[float, str, str]]) -> RenderableType:
    """The results of a query: cosine, place or name, text."""
    table = Table(title=Text(f"“{query}”"), title_justify="left", title_style="bold", show_header=False, box=None)
    for column in ("cosine", "place", "text"):
        table.add_column(column, overflow="fold")  # a long path or word is wrapped, never cut
    for cosine, place, text in results:
        table.add_row(Text(f"{cosine:.2f}", "dim"), Text(place, "cyan"), Text(shortened(text)))
    return table


def shortened(text: str) -> str:
    """At most `TEXT_WIDTH` characters."""
    return text if len(text) <= TEXT_WIDTH else text[: TEXT_WIDTH - 3] + "..."
