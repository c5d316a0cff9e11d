"""Search results: text that looks like markup stays text, and long texts are cut."""

from sentloom.report.data_tables import answers
from tests.report.printing import printed


def test_text_that_looks_like_markup_stays_text():
    text = printed(answers("a [bold]query", [(0.5, "f.txt, line 1", "see [/red] and [link]")]))
    assert "a [bold]query" in text
    assert "see [/red] and [link]" in text


def test_long_texts_are_cut():
    text = printed(answers("q", [(0.5, "f.txt, line 1", "x" * 400)]))
    assert "x" * 157 + "..." in text
    assert "x" * 158 not in text
