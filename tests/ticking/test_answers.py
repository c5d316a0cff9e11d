"""Answers: saved at once, complete or not at all, and only about the questions that they are about."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from sentloom.errors import DamagedFile, InputError
from sentloom.ticking.answers import Tick, header_for, left_of, meaning, merged, open_answers, read_answers


def test_an_answer_is_in_the_file_when_append_returns(questions, tmp_path):
    path = tmp_path / "ticks.jsonl"
    with open_answers(path, header_for(questions, "b", "f")) as file:
        file.append(questions.asked[0], "left")
        (one,) = read_answers(path).given
        assert one.answer == one.left == left_of(questions.asked[0], file.header.salt)
        assert (one.query, one.base, one.fitted) == ("query 0", "base 0", "fitted 0")


def test_a_later_answer_replaces_an_earlier_one_and_the_file_is_continued(answered):
    answered("base", "both")
    found = answered("fitted")
    assert [answer.answer for answer in found.given] == ["base", "both", "fitted"]
    assert {query: answer.answer for query, answer in found.latest.items()} == {"query 0": "fitted", "query 1": "both"}


def test_left_and_right_are_by_chance_and_mean_a_model(questions):
    assert [meaning(choice, "base") for choice in ("left", "right", "both", "skip")] == [
        "base",
        "fitted",
        "both",
        "skip",
    ]
    assert meaning("left", "fitted") == "fitted"
    lefts = [left_of(question, "salt") for question in questions.asked]
    assert 12 < lefts.count("base") < 38
    assert lefts != [left_of(question, "other") for question in questions.asked]


def test_half_a_line_is_removed_and_a_damaged_one_is_named(answered, tmp_path, questions):
    answered("base", "fitted")
    path = tmp_path / "ticks.jsonl"
    path.write_bytes(path.read_bytes() + b'{"query": "query 2", "ba')
    assert len(read_answers(path).given) == 2
    with open_answers(path, header_for(questions, "b", "f")) as file:
        file.append(questions.asked[2], "both")
    assert [answer.query for answer in read_answers(path).given] == ["query 0", "query 1", "query 2"]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:20] + b"\n", *lines[2:]]))
    with pytest.raises(DamagedFile, match="line 2"):
        read_answers(path)


def test_other_questions_and_other_files_are_refused(answered, questions, tmp_path):
    answered("base")
    with (
        pytest.raises(InputError, match="other models"),
        open_answers(tmp_path / "ticks.jsonl", header_for(questions, "b", "another")),
    ):
        pass
    (tmp_path / "other.jsonl").write_text('{"query": "x"}\n')
    for name, problem in (("other.jsonl", "not a file of ticks"), ("missing.jsonl", "cannot be read")):
        with pytest.raises(InputError, match=problem):
            read_answers(tmp_path / name)
    newer = replace(header_for(questions, "b", "f"), ticks=99)
    with pytest.raises(InputError, match="newer sentloom"), open_answers(tmp_path / "new.jsonl", newer):
        pass


def test_two_people_are_averaged_and_skipped_queries_are_left_out(answered):
    one = answered("base", "fitted", "skip", "skip", name="one.jsonl")
    other = answered("fitted", "fitted", "neither", "skip", name="other.jsonl")
    assert merged([one, other]) == {
        "query 0": Tick(0, 0.5, 0.5),
        "query 1": Tick(1, 0.0, 1.0),
        "query 2": Tick(0, 0.0, 0.0),
    }
    assert merged([one])["query 1"].value == 1


WRITER = """
import sys
from pathlib import Path
from sentloom.ticking.answers import header_for, open_answers
from sentloom.ticking.questions import Question, Questions
asked = tuple(Question(f"query {n}", "b", "f", 0) for n in range(10**6))
with open_answers(Path(sys.argv[1]), header_for(Questions(asked[:9], (9,), 9, 9, 9), "b", "f")) as file:
    for question in asked:
        file.append(question, "left")
        print(question.query, flush=True)
"""


@pytest.mark.long
def test_every_confirmed_answer_survives_a_kill(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path / "ticks.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        confirmed = [process.stdout.readline().strip() for _ in range(200)]
        os.kill(process.pid, signal.SIGKILL)
        confirmed += [line.strip() for line in process.stdout if line.endswith("\n")]
    kept = [answer.query for answer in read_answers(tmp_path / "ticks.jsonl").given]
    assert kept[: len(confirmed)] == confirmed
    assert len(kept) <= len(confirmed) + 1
