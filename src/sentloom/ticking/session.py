"""A session of ticking: what is asked next, what was answered, and what it shows so far.

Page and terminal share it. The terminal's part, which reads typed lines, is at the end.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sentloom.fitting.measures import Measure
from sentloom.ticking.answers import AnswerFile, Answers, Choice, left_of
from sentloom.ticking.questions import Question, Questions
from sentloom.ticking.verdict import Ruling, rule, sentence

LONGEST = 2_000  # characters of a text that are shown
KEYS: dict[str, Choice] = {"l": "left", "r": "right", "b": "both", "n": "neither", "s": "skip"}
HELP = "l: A is right   r: B is right   b: both   n: neither   s: skip   u: undo   q: stop"
WIDTH = 100
Say = Callable[[str], None]


class Session:
    """Questions of a fit, the file of one person's answers, and the answers of others that count as well."""

    def __init__(
        self, questions: Questions, file: AnswerFile, queries: Sequence[str], others: Sequence[Answers] = ()
    ) -> None:
        self._questions, self._file, self._queries, self._others = questions, file, queries, tuple(others)
        self._numbers = {question.query: number for number, question in enumerate(questions.asked)}
        self._again: list[int] = []  # questions that were gone back to, the next one last
        self.ruling = self._rule()

    @property
    def number(self) -> int | None:
        """The number of the question that is asked now; None if all were asked."""
        if self._again:
            return self._again[-1]
        known = self._file.answers.latest
        return next((number for query, number in self._numbers.items() if query not in known), None)

    @property
    def question(self) -> Question | None:
        """The question that is asked now."""
        return None if self.number is None else self._questions.asked[self.number]

    @property
    def sides(self) -> tuple[str, str]:
        """The results to show on the left and on the right."""
        assert self.question is not None
        both = self.question.base, self.question.fitted
        return both if left_of(self.question, self._file.header.salt) == "base" else both[::-1]

    @property
    def answered(self) -> int:
        """How many queries this person has answered."""
        return len(self._file.answers.answered)

    def answer(self, number: int, choice: Choice) -> bool:
        """Save the answer to the question that is asked now; False if another one is, as when two pages are open."""
        if number != self.number or self.question is None:
            return False
        self._file.append(self.question, choice)
        if self._again:
            self._again.pop()
        self.ruling = self._rule()
        return True

    def back(self) -> bool:
        """Ask the question again that was answered before the current one; False if there is none."""
        queries = dict.fromkeys(answer.query for answer in self._file.answers.given)
        before = [number for query in queries if (number := self._numbers[query]) not in self._again]
        if not before:
            return False
        self._again.append(before[-1])
        return True

    def _rule(self) -> Ruling:
        return rule([self._file.answers, *self._others], self._queries)

    def state(self) -> dict[str, Any]:
        """Everything that the page shows. Which result is whose is not in it."""
        ruling, question = self.ruling, self.question
        left, right = (shown(text) for text in self.sides) if question else ("", "")
        gain = ruling.decided or ruling.so_far
        return {
            "question": question
            and {"number": self.number, "query": shown(question.query), "left": left, "right": right},
            "answered": self.answered,
            "skipped": ruling.ticks.skipped,
            "next_look": ruling.next_look,
            "queries": ruling.ticks.queries,
            "different": ruling.ticks.different,
            "can_go_back": bool(self._file.answers.given),
            "so_far": interval(ruling.so_far),
            "decided": interval(ruling.decided),
            "verdict": ruling.gate.verdict if ruling.decided else None,
            "summary": sentence(gain, ruling.ticks) if gain else "",
            "line": ruling.verdict_line,
        }


def interval(gain: Measure | None) -> dict[str, float] | None:
    """A gain with its interval, for the page."""
    if gain is None:
        return None
    return {"gain": gain.difference, "low": gain.low, "high": gain.high, "level": gain.level, "ticks": gain.items}


def shown(text: str) -> str:
    """The first LONGEST characters of a text."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


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
    if (gain := ruling.so_far) is None:
        return f"  {answered}{until}"
    points = f"{gain.difference:+.1f} points (95% interval {gain.low:+.1f} to {gain.high:+.1f})"
    return f"  {answered}{until}; so far {points}"
