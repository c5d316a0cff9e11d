"""Answers as they are kept: cut-off lines, tokens, and what they cost."""

import pytest

from sentloom.writing.answers import ANSWERS, UNKNOWN, Answers, Prices, Usage
from sentloom.writing.writer import Written


def test_a_line_that_was_cut_off_is_asked_again_and_hurts_no_other(tmp_path):
    path = tmp_path / ANSWERS
    first = Answers(path)
    first.add("a", Written("one", tokens_read=5, tokens_written=2))
    first.add("b", Written("two"))
    path.write_bytes(path.read_bytes()[:-9])
    second = Answers(path)
    assert second.get("a") == Written("one", tokens_read=5, tokens_written=2)
    assert second.get("b") is None
    second.add("c", Written("drei ä", finished=False))
    assert Answers(path).get("c") == Written("drei ä", finished=False)
    assert Answers(path).usage == Usage(5, 2, 0)


def test_costs_by_hand(tmp_path):
    answers = Answers(tmp_path / ANSWERS)
    assert answers.prices == UNKNOWN
    answers.set_prices(Prices(2.5, 10.0))
    answers.add("a", Written("one", tokens_read=400_000, tokens_written=20_000))
    answers.add("b", Written("two", tokens_read=100_000, tokens_written=30_000))
    answers.lose(10_000)
    assert answers.cost == pytest.approx(2.5 * 0.5 + 10 * 0.05 + 10 * 0.01)  # the lost ones at the higher price
    assert Answers(tmp_path / ANSWERS).cost == answers.cost
    answers.set_prices(Prices(1.0, 0.0))
    assert Answers(tmp_path / ANSWERS).cost == pytest.approx(0.5 + 0.01)


@pytest.mark.parametrize(
    "line", ["3", '"key"', "[1]", "{}", '{"lost": null}', '{"prices": [1]', '{"prices": "ab"}', '{"key": 1, "no": 2}']
)
def test_lines_that_are_none_are_ignored(tmp_path, line):
    (tmp_path / ANSWERS).write_text(f"{line}\n", "ascii")
    answers = Answers(tmp_path / ANSWERS)
    assert (answers.usage, answers.prices) == (Usage(), UNKNOWN)
