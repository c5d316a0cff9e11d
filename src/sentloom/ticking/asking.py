"""Asks the questions in a terminal, or whatever else types lines."""

import textwrap
from collections.abc import Callable, Iterable, Iterator

from sentloom.ticking.answers import Choice
from sentloom.ticking.session import Session, shown

KEYS: dict[str, Choice] = {"l": "left", "r": "right", "b": "both", "n": "neither", "s": "skip"}
HELP = "l: A is right   r: B is right   b: both   n: neither   s: skip   u: undo   q: stop"
WIDTH = 100
Say = Callable[[str], None]


def ask(session: Session, lines: Iterable[str], say: Say) -> None:
    """Ask until everything is answered, the lines end, or one of them is q. Every answer is saved at once."""
    say(f"Which result is right for the query? {HELP}")
    typed = iter(lines)
    while session.question is not None:
        say(question_text(session))
        if not _answered(session, typed, say):
            return
        say(progress_line(session))
    say("Everything was asked.")


def _answered(session: Session, lines: Iterator[str], say: Say) -> bool:
    """Whether one of the keys was typed that lead to the next question; False to stop."""
    for line in lines:
        key = line.strip().lower()[:1]
        if key == "q":
            return False
        if key == "u":
            return session.back() or _answered(session, lines, say)
        if key in KEYS:
            assert session.number is not None
            return session.answer(session.number, KEYS[key])
        say(HELP)
    return False


def question_text(session: Session) -> str:
    """The query and both results, without a hint at whose they are."""
    assert session.question is not None
    left, right = session.sides
    parts = {"Query": session.question.query, "  A": left, "  B": right}
    return "\n" + "\n".join(_indented(name, shown(text)) for name, text in parts.items())


def _indented(name: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=f"{name}: ", subsequent_indent=" " * (len(name) + 2))


def progress_line(session: Session) -> str:
    """How many answers there are, and what they show so far."""
    ruling = session.ruling
    answered = f"{session.answered} answered"
    until = f", verdict at {ruling.next_look}" if ruling.next_look else ""
    if (one := ruling.so_far) is None:
        return f"  {answered}{until}"
    return f"  {answered}{until}; so far {one.difference:+.1f} points (95% interval {one.low:+.1f} to {one.high:+.1f})"
