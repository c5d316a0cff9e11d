"""The report of a fit as files: report.html, report.md, plots/*.png and report.json."""

from collections.abc import Sequence
from pathlib import Path

from sentloom.files import new_folder
from sentloom.fitting.result import FitResult
from sentloom.report import fit_plots, plots
from sentloom.report.page import page
from sentloom.report.rendering import render
from sentloom.report.text_files import write_text

PAGE = "report.html"


def write_report(result: FitResult, folder: Path) -> Path:
    """Write all files, each completely or not at all; returns the path of the page, which needs none of the others."""
    figures = fit_plots.figures(result)
    if figures:
        with new_folder(folder / "plots") as part:
            for name, figure in figures.items():
                plots.write(figure, part / f"{name}.png")
    result.write(folder / "report.json")
    write_text(folder / "report.md", report_markdown(result, list(figures)))
    write_text(folder / PAGE, page(result, figures))
    return folder / PAGE


def report_markdown(result: FitResult, pictures: Sequence[str]) -> str:
    """The report as Markdown; `pictures` are the names of the files in plots/."""
    return render("report.md", result, pictures=pictures)
