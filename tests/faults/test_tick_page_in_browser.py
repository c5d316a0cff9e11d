"""The page of `sentloom tick` in Chromium: answers by keyboard and mouse, the verdict, and a server that has gone."""

import contextlib
import threading

import pytest

from sentloom.ticking.answers import header_for, open_answers, read_answers
from sentloom.ticking.app import serve
from sentloom.ticking.questions import Question, Questions
from sentloom.ticking.session import Session
from tests.faults.test_page_in_browser import PHONE, browser, visit  # noqa: F401 - fixtures

pytestmark = pytest.mark.long
FAULT = "the page in Chromium"
DIFFERENT = tuple(Question(f"query {n}", f"base {n}", f"fitted {n}", n % 2) for n in range(50))
QUESTIONS = Questions(DIFFERENT, (25, 25), 100, 500, 500)


@pytest.fixture
def file(tmp_path):
    with open_answers(tmp_path / "ticks.jsonl", header_for(QUESTIONS, "b", "f")) as opened:
        yield opened


@contextlib.contextmanager
def served(file):
    """A session, its address, and its thread, which ends when the page says so."""
    session = Session(QUESTIONS, file, [f"query {n}" for n in range(100)])
    address, ready = [], threading.Event()
    server = threading.Thread(target=serve, args=(session, lambda url: (address.append(url), ready.set())), daemon=True)
    server.start()
    assert ready.wait(60)
    yield session, address[0], server


def press(page, key):
    """Press a key and wait until another query is shown, or a verdict."""
    query = page.locator("#query").text_content()
    page.keyboard.press(key)
    page.wait_for_function(
        "q => document.getElementById('query').textContent !== q || document.getElementById('question').hidden",
        arg=query,
    )


def test_answers_by_key_and_mouse_are_saved_and_the_verdict_comes_at_30(file, visit, tmp_path):  # noqa: F811
    with served(file) as (session, address, server):
        page = visit(address)
        page.locator("#question").wait_for()
        for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "n", "s", "u", "b"):
            press(page, key)
        said = [one.answer for one in read_answers(tmp_path / "ticks.jsonl").given]
        assert said[2:] == ["both", "neither", "skip", "both"]
        assert page.locator("#progress").text_content() == "5 of 30 until the verdict"
        assert page.evaluate("document.activeElement.id") == "query", "a screen reader reads the next query"
        page.get_by_role("button", name="Both are right").click()
        page.reload()
        page.locator("#question").wait_for()
        assert page.locator("#progress").text_content() == "6 of 30 until the verdict"
        while page.locator("#question").is_visible():
            press(page, "ArrowUp")
        assert page.locator("#headline").text_content() == "No difference shown"
        assert "Of the 50 of 100 held-out queries" in page.locator("#reason").text_content()
        page.get_by_role("button", name="Answer 20 more").click()
        press(page, "ArrowLeft")
        assert session.ruling.ticks.answered == 31
        page.get_by_role("button", name="Stop here").click()
        server.join(60)
        assert not server.is_alive()


def test_a_phone_has_no_sideways_scrolling_and_taps_answer(file, visit):  # noqa: F811
    with served(file) as (session, address, server):
        page = visit(address, **PHONE)
        page.locator("#question").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("[data-choice=right]").tap()
        page.get_by_role("heading", name="query 1").wait_for()
        assert session.ruling.ticks.answered == 1
        page.get_by_role("button", name="Stop here").tap()
        server.join(60)


def test_an_answer_that_was_not_saved_is_said(file, visit):  # noqa: F811
    with served(file) as (session, address, server):
        page = visit(address)
        page.locator("#question").wait_for()
        page.evaluate("fetch('finish', {method: 'POST', body: '{}'})")
        server.join(60)
        page.keyboard.press("ArrowLeft")
        page.locator("#problem").wait_for()
        assert "was not saved" in page.locator("#problem").text_content()
        assert page.locator("#query").text_content() == "query 0"
        assert session.ruling.ticks.answered == 0
