"""Ticking in a terminal."""

import pytest

from sentloom.ticking.answers import header_for, open_answers, read_answers
from sentloom.ticking.session import Session, ask


@pytest.fixture
def typed(questions, tmp_path):
    def run(*lines):
        said = []
        with open_answers(tmp_path / "ticks.jsonl", header_for(questions, "b", "f")) as file:
            session = Session(questions, file, [f"query {n}" for n in range(100)])
            ask(session, lines, said.append)
        return read_answers(tmp_path / "ticks.jsonl").given, "\n".join(said)

    return run


def test_keys_are_answers_and_other_lines_explain_them(typed):
    given, said = typed("l", "R\n", "what?", "b", "n", "s", "q", "l")
    assert [answer.answer for answer in given][2:] == ["both", "neither", "skip"]
    assert (given[0].answer, given[1].answer != given[1].left) == (given[0].left, True)
    assert said.count("l: A is right") == 2, "at the beginning, and after a line that is no key"
    assert "query 4" in said
    assert "query 6" not in said


def test_undo_asks_again_and_the_end_of_the_lines_stops(typed):
    given, _ = typed("u", "b", "u", "n")
    assert [(answer.query, answer.answer) for answer in given] == [("query 0", "both"), ("query 0", "neither")]
    again, _ = typed("b")
    assert again[-1].query == "query 1", "the same command continues"


def test_progress_has_the_estimate_and_the_end_is_said(typed):
    _, said = typed(*["b"] * 50)
    assert "3 answered, verdict at 30\n" in said
    assert "4 answered, verdict at 30; so far +0.0 points (95% interval" in said, "two answers in both strata"
    assert said.endswith("Everything was asked.")
