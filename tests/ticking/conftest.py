"""Questions, files of answers to them, and the folder of a fit of raw text."""

import pytest

from sentloom.ticking.answers import header_for, left_of, open_answers, read_answers
from sentloom.ticking.questions import Question, Questions
from tests.ticking.small_fit import build_fit_folder


@pytest.fixture
def questions():
    """50 of 100 queries have different first results."""
    asked = tuple(Question(f"query {n}", f"base {n}", f"fitted {n}", n % 2) for n in range(50))
    return Questions(asked, (25, 25), 100, 500, 500)


@pytest.fixture
def answered(questions, tmp_path):
    """A file with answers in terms of the models, one for each of the first questions."""

    def write(*said, name="ticks.jsonl", header=None):
        with open_answers(tmp_path / name, header or header_for(questions, "b", "f")) as file:
            for question, answer in zip(questions.asked, said, strict=False):
                left = left_of(question, file.header.salt)
                choice = answer if answer not in ("base", "fitted") else "left" if answer == left else "right"
                file.append(question, choice)
        return read_answers(tmp_path / name)

    return write


@pytest.fixture
def fit_folder(tmp_path, one_thread):
    return build_fit_folder(tmp_path)
