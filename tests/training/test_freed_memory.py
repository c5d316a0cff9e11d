"""Freed memory stays: the pages of a large tensor are not cleared again when the next one asks for them."""

import subprocess
import sys

import pytest

from sentloom.training.gradients import keep_freed_memory

FAULTS = """
import resource
import numpy as np
from sentloom.training.gradients import keep_freed_memory

def faults():
    np.ones(50_000_000, np.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(50_000_000, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults())
keep_freed_memory()
print(faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is glibc's")
def test_the_pages_of_a_freed_tensor_are_there_for_the_next_one():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before > 100  # a page is cleared when it is first written to, again for every array
    assert after < 100


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    opened = []
    monkeypatch.setattr("ctypes.CDLL", opened.append)
    keep_freed_memory()
    assert opened == []
