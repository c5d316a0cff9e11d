"""A session: the next question, going back, and a state that does not say whose result is whose."""

import json

import pytest

from sentloom.ticking.answers import header_for, left_of, open_answers, read_answers
from sentloom.ticking.session import LONGEST, Session, shown

QUERIES = [f"query {n}" for n in range(100)]


@pytest.fixture
def session(questions, tmp_path):
    with open_answers(tmp_path / "ticks.jsonl", header_for(questions, "b", "f")) as file:
        yield Session(questions, file, QUERIES)


def test_questions_come_in_order_and_only_the_current_one_is_answered(session, tmp_path):
    assert session.number == 0
    assert session.answer(0, "both")
    assert not session.answer(0, "left"), "a second page, or a second click"
    assert session.number == 1
    assert session.answer(1, "skip")
    assert [answer.answer for answer in read_answers(tmp_path / "ticks.jsonl").given] == ["both", "skip"]
    assert session.number == 2


def test_sides_are_shown_by_the_salt_of_the_file(session, questions, tmp_path):
    salt = read_answers(tmp_path / "ticks.jsonl").header.salt
    for number in range(8):
        left = left_of(questions.asked[number], salt)
        assert session.sides[0] == f"{left} {number}"
        session.answer(number, "left")
    answers = read_answers(tmp_path / "ticks.jsonl").given
    assert all(answer.answer == answer.left for answer in answers)


def test_going_back_asks_again_as_often_as_wanted(session):
    assert not session.back()
    for number in range(3):
        session.answer(number, "left")
    assert session.back()
    assert session.number == 2
    assert session.back()
    assert session.number == 1
    session.answer(1, "both")
    assert session.number == 2, "which was gone back over"
    session.answer(2, "right")
    assert session.number == 3
    assert session.ruling.ticks.answered == 3


def test_the_state_has_all_that_the_page_shows(session):
    state = session.state()
    assert state["question"]["query"] == "query 0"
    assert {state["question"]["left"], state["question"]["right"]} == {"base 0", "fitted 0"}
    assert (state["answered"], state["next_look"], state["so_far"], state["verdict"]) == (0, 30, None, None)
    for number in range(50):
        session.answer(number, "both")
    state = json.loads(json.dumps(session.state()))
    assert state["question"] is None
    assert (state["verdict"], state["decided"]["gain"], state["next_look"]) == ("no difference shown", 0, None)
    assert "Of the 50 of 100 held-out queries" in state["summary"]


def test_long_texts_are_cut():
    assert shown("x" * (LONGEST + 1)) == "x" * LONGEST + " …"
    assert shown("short") == "short"
