"""Progress: a bar in a terminal, lines in a pipe, one line in a notebook."""

import os
import pty
import re
import subprocess
import sys
import time

import nbformat
import pytest
from nbclient import NotebookClient

from sentloom.progress import OutOfTime, _Count, deadline, duration, progress

SCRIPT = """
import time
from sentloom.progress import progress
with progress("encoding", 10, "sentences", log_first=FIRST, log_every=EVERY) as advance:
    for _ in range(10):
        time.sleep(0.12)
        advance(1)
with progress("scoring", 2, "sets", log_first=FIRST, log_every=EVERY) as advance:
    advance(2)
"""


def piped(first, every):
    script = SCRIPT.replace("FIRST", str(first)).replace("EVERY", str(every))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_a_pipe_gets_a_first_line_soon_and_a_last_one_at_the_end():
    first, last = piped(0.3, 30)  # the second piece of work is over before its first line is due
    assert re.fullmatch(r"encoding: \d+ of 10 sentences.*", first)
    assert re.fullmatch(r"encoding: 10 sentences in \d\.\d s", last)


def test_short_work_prints_nothing_in_a_pipe():
    assert piped(30, 30) == []


def test_a_pipe_gets_further_lines_later():
    *lines, last = piped(0.1, 0.3)
    assert 1 <= len(lines) <= 10  # how many depends on how busy the machine is
    assert all(re.match(r"encoding: \d+ of 10 sentences", line) for line in lines)
    assert last.startswith("encoding: 10 sentences in ")


def test_a_log_line_has_rate_and_time_left():
    count = _Count("encoding", 7400, "sentences")
    count.started, count.done = time.monotonic() - 3700, 3700
    assert str(count) == "encoding: 3,700 of 7,400 sentences, 1 per second, 1:01:40 left"


def test_what_was_done_before_does_not_count_for_the_speed():
    count = _Count("training", 400, "sentences", done=300)
    count.started = time.monotonic() - 50
    assert str(count) == "training: 300 of 400 sentences"
    count.done = 350
    assert str(count) == "training: 350 of 400 sentences, 1 per second, 0:00:50 left"


def test_a_notebook_gets_a_line_that_is_updated_and_not_left_empty():
    source = SCRIPT.replace("FIRST", "3").replace("EVERY", "30").replace("range(10)", "range(6)").replace("0.12", "0.3")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    seen = []
    client = NotebookClient(book, kernel_name="python3", timeout=120)
    process, client.process_message = (
        client.process_message,
        lambda message, *rest: seen.append(message) or process(message, *rest),
    )
    client.execute()
    shown = [
        message["content"]["data"].get("text/plain", "")
        for message in seen
        if message["msg_type"] in ("display_data", "update_display_data")
    ]
    assert re.match(r"encoding: \d of 10 sentences, ", shown[0])
    assert re.fullmatch(r"encoding: 6 sentences in [\d.]+ s", shown[-1])
    assert not any(message["msg_type"] == "stream" for message in seen)


def test_a_terminal_gets_counts_rate_and_time_left():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("FIRST", "3").replace("EVERY", "30")],
        stderr=theirs,
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
    )
    os.close(theirs)
    drawn = b""
    while True:
        try:
            block = os.read(ours, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not block:
            break
        drawn += block
    os.close(ours)
    assert process.wait() == 0
    assert b"encoding" in drawn
    assert b"10/10" in drawn
    assert b"sentences/s" in drawn
    assert b"0:00:0" in drawn


def test_durations_have_a_unit_that_fits() -> None:
    assert [duration(seconds) for seconds in (0.04, 4.25, 48.2, 89.9, 90, 318, 725, 5400, 44_000)] == [
        *("0.0 s", "4.2 s", "48 s", "90 s", "1.5 min", "5.3 min", "12 min", "1.5 h", "12 h")
    ]


def test_what_advances_after_its_deadline_stops_and_an_inner_deadline_counts():
    done = []
    with deadline(-1.0):
        with pytest.raises(OutOfTime), progress("encoding", 3, "sentences", show=False) as advance:
            for number in range(3):
                done.append(number)
                advance(1)
        with deadline(60.0), progress("encoding", 1, "sentences") as advance:
            advance(1)
    assert done == [0]
    with progress("encoding", 1, "sentences") as advance:
        advance(1)
