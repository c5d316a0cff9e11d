"""Progress bars are drawn on a terminal and nowhere else."""

import os
import pty
import subprocess
import sys

SCRIPT = """
import time
from sentloom.progress import progress
with progress("encoding", 10, "sentences") as advance:
    for _ in range(10):
        time.sleep(0.12)
        advance(1)
"""


def test_a_pipe_gets_no_bar():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    assert done.stderr == b""


def test_a_terminal_gets_counts_rate_and_time_left():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stderr=theirs, env={**os.environ, "COLUMNS": "120", "TERM": "xterm"}
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
