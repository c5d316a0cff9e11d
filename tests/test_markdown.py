"""Untrusted text has no effect as Markdown or HTML."""

import pytest

from sentloom.markdown import fenced, plain, raw_table, table


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a *b* [c](d)", r"a \*b\* \[c\](d)"),
        ("<script>", "&lt;script>"),
        ("> quoted > not", r"\> quoted > not"),
        ("one\n\n# two\t|", r"one \# two \|"),
        ("no markup: 1 + 1 = 2", "no markup: 1 + 1 = 2"),
    ],
)
def test_markup_is_escaped_on_one_line(text, escaped):
    assert plain(text) == escaped


@pytest.mark.parametrize(("text", "fence"), [("a", "```"), ("``", "```"), ("```", "````"), ("a ````` b", "``````")])
def test_a_fence_is_longer_than_any_run_of_backticks(text, fence):
    assert fenced(f"{text}\n\n", "python") == f"{fence}python\n{text}\n{fence}"


def test_tables_align_numbers_right_and_escape_cells_unless_they_are_markdown():
    rows = [("a|b", "*1*")]
    assert table(("name", "n"), rows) == "| name | n |\n|---|---:|\n| a\\|b | \\*1\\* |"
    assert (
        raw_table(("x", "y", "z"), [("**a**", "b", "2")], words=2) == "| x | y | z |\n|---|---|---:|\n| **a** | b | 2 |"
    )
