"""What a fit prints at the end."""

from dataclasses import replace

from sentloom.report.fit_tables import fit_summary
from tests.report.printing import printed
from tests.report.results_by_hand import BARE, FULL


def cells(line):
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_runs_and_scores_by_hand():
    rows = [cells(line) for line in printed(fit_summary(FULL)).splitlines()]
    assert ["simcse", "won", "2", "120", "14 s", "73.95", "+12.75 (10.75 to 14.75)"] in rows
    assert ["broken", "failed: the loss is no number", "1", "60", "3.0 s", "–", "–"] in rows
    assert ["halves", "the label of halves; MRR@10, 0 to 100", "58.31", "69.84", "+11.53 (10.48 to 12.58)"] in rows
    watched = ["own rows (for information)", "the label of own rows; MRR@10, 0 to 100", "91.07", "90.66"]
    assert [*watched, "−0.41 (−1.06 to 0.24), no difference shown"] in rows
    assert ["mean", "of the deciding tasks", "73.36", "79.99", "+6.63 (5.73 to 7.53)"] in rows


def test_the_verdict_comes_after_the_warnings_and_before_the_advice():
    text = printed(fit_summary(replace(FULL, verdict="worse", model=None)))
    assert (
        text.index("WARNING: General ability fell")
        < text.index("Worse than the best base: no model was")
        < text.index("The base is")
    )
    assert "Too little." in printed(fit_summary(BARE))


def test_text_that_looks_like_markup_stays_text():
    assert "[bold]x[/red]" in printed(fit_summary(replace(BARE, reason="[bold]x[/red]")))
