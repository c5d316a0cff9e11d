"""A fit in a notebook: its verdict and scores, with everything escaped."""

from pathlib import Path

from sentloom.fitting.measures import Measure
from sentloom.fitting.result import FitResult
from sentloom.report.fit_tables import fit_html

NUMBERS = {"before_low": 0, "before_high": 0, "after_low": 0, "after_high": 0, "p": 0.01}


def test_scores_are_shown_and_text_is_escaped():
    one = Measure(
        "<b>faq</b>", "", "deciding", "mrr", 9, before=50.0, after=60.5, difference=10.5, low=1, high=20, **NUMBERS
    )
    result = FitResult("t", "better", "Better & sure.", "base", "m", "2026-11-17", "sentloom fit", measures=(one,))
    page = fit_html(result, Path("m<1>"), Path("r.html"))
    assert "<td>50.00</td>" in page
    assert "+10.50 (+1.00 to +20.00)" in page
    assert "&lt;b&gt;faq&lt;/b&gt;" in page
    assert "Better &amp; sure." in page
    assert "m&lt;1&gt;" in page
    assert "No model was written" in fit_html(result, None, Path("r.html"))
