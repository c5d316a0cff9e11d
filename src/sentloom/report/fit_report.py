"""The report of a fit as files: report.html, report.md, plots/*.png and story.json."""

from pathlib import Path

from sentloom.files import new_file, new_folder
from sentloom.report import fit_markdown, fit_plots, plots
from sentloom.report.page import page
from sentloom.report.story import Story

PAGE = "report.html"


def write_report(story: Story, folder: Path) -> Path:
    """Write all of it, each file whole or not at all, and give the path of the page, which needs none of the others."""
    figures = fit_plots.figures(story)
    if figures:
        with new_folder(folder / "plots") as part:
            for name, figure in figures.items():
                plots.write(figure, part / f"{name}.png")
    story.write(folder / "story.json")
    _write(folder / "report.md", fit_markdown.report(story, list(figures)))
    _write(folder / PAGE, page(story))
    return folder / PAGE


def _write(path: Path, text: str) -> None:
    with new_file(path) as part:
        part.write_text(text, "utf-8", "replace")  # half of a character pair, as in odd file names, stops nothing
