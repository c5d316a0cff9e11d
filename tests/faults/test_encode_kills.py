"""kill -9 in the middle of long work: the same command again ends with the same bytes, and repeats nothing done."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.encoder.small_models import SENTENCES, build_model_folder

FAULT = "kill -9 of `encode`"

SCRIPT = """
import sys
from sentloom.encoder import Encoder
Encoder.window = 50
from sentloom.cli import main
sys.argv = ["sentloom", "encode", "texts.txt", "-o", sys.argv[1], "--model", "model"]
main()
"""


@pytest.fixture
def work(tmp_path):
    build_model_folder("bert", tmp_path / "model")
    texts = [f"{sentence} {number}" for number in range(2000) for sentence in SENTENCES]
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    return tmp_path


def start(folder, target):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", SCRIPT, target]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_killed_encode_goes_on_and_ends_with_the_same_bytes(work):
    whole = start(work, "whole.npy")
    assert whole.communicate()[0]
    assert whole.returncode == 0
    journal = work / ".v.npy.done.part"
    killed = start(work, "v.npy")
    while not journal.exists():
        assert killed.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    done = 50 * len(json.loads(journal.read_text())["windows"])
    assert 0 < done < 16_000
    assert not (work / "v.npy").exists()
    again = start(work, "v.npy")
    output = again.communicate()[0]
    assert again.returncode == 0
    assert f"resumed after {done:,} distinct sentences" in output
    assert (work / "v.npy").read_bytes() == (work / "whole.npy").read_bytes()
    left = {path.name for path in work.iterdir()}
    assert left == {"model", "scratch", "texts.txt", "v.npy", "whole.npy"}
