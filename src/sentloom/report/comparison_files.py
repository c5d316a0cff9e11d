"""A comparison on disk: compare.json (with every run and the place of its model), compare.md and compare.csv."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean

from sentloom import __version__
from sentloom.files import new_file
from sentloom.pipeline.comparing import Compared
from sentloom.pipeline.results import refuse_foreign_file, run_values
from sentloom.pipeline.runner import PlanResult
from sentloom.report.comparison_tables import ComparisonTable, as_csv, as_markdown, comparison

JSON, MARKDOWN, CSV = FILES = "compare.json", "compare.md", "compare.csv"


def comparison_table(found: Compared) -> ComparisonTable:
    """The table, with a note per plan that is missing."""
    steps = {row.name: mean(_steps(one) for one in found.results if one.plan == row.name) for row in found.rows}
    table = comparison(found.rows, steps)
    stopped = [
        f"not in the table: {name}, which stopped ({error.where}: {error.problem})"
        for name, error in found.failed.items()
    ]
    return replace(table, notes=(*table.notes, *stopped))


def _steps(result: PlanResult) -> int:
    return sum(int(stage["outcome"]["steps"]) for stage in result.stages)


def refuse_foreign_tables(folder: Path) -> None:
    """Never overwrite a table that no comparison wrote."""
    for name in (MARKDOWN, CSV):
        refuse_foreign_file(folder / name, folder / JSON)


def write_comparison(found: Compared, folder: Path) -> None:
    """Write all three files."""
    table = comparison_table(found)
    runs = [run_values(result, folder) for result in found.results]
    whole = {"sentloom": __version__, **asdict(table), "runs": runs}
    texts = {
        JSON: json.dumps(whole, indent=1, ensure_ascii=False) + "\n",
        MARKDOWN: as_markdown(table),
        CSV: as_csv(table),
    }
    for name, text in texts.items():
        with new_file(folder / name) as part:
            part.write_text(text, "utf-8")
