"""kill -9 while views are made: the same command resumes, makes nothing twice and writes the same bytes."""

import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from sentloom.data import read
from sentloom.data.writers import write
from sentloom.writing.views.pairs import make_pairs
from sentloom.writing.views.settings import Synonyms

FAULT = "kill -9 of `views`"  # its row in the fault bench

SCRIPT = """
import sys
from sentloom.writing.views.synonyms import SynonymReplacement
SynonymReplacement.shard = 10
from sentloom.cli import main
sys.argv = ["sentloom", "lab", "views", "texts.txt", "--kind", "synonyms", "-o", sys.argv[1], "--cache", sys.argv[2]]
main()
"""
TEXTS = 2000


def start(folder, target, cache):
    command = [sys.executable, "-c", SCRIPT, target, cache]
    return subprocess.Popen(command, cwd=folder, env=dict(os.environ), stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_killed_run_resumes_and_writes_the_same_bytes(tmp_path, wordnet):
    (tmp_path / "texts.txt").write_text("".join(f"the box in the city {number}\n" for number in range(TEXTS)))
    write(make_pairs(read(tmp_path / "texts.txt"), Synonyms()), tmp_path / "whole.tsv")
    killed = start(tmp_path, "views.tsv", "two")
    while not list((tmp_path / "two").glob("*/[0-9a-f]*.arrow")):
        assert killed.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "two").glob("*/[0-9a-f]*.arrow")}
    assert 0 < len(before) < TEXTS / 10
    assert not (tmp_path / "views.tsv").exists()
    assert "2,000 pairs" in start(tmp_path, "views.tsv", "two").communicate()[0]
    assert (tmp_path / "views.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    shards = list((tmp_path / "two").glob("*/[0-9a-f]*.arrow"))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sum(len(pa.ipc.open_file(str(path)).read_all()) for path in shards) == TEXTS  # none was made twice
