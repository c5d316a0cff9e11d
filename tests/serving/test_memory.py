"""Memory that is freed goes back to the system, and few kernels are cached."""

import subprocess
import sys

import pytest

HELD = """
import ctypes
import os
from sentloom.serving.server import limit_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

if {limited}:
    limit_memory()
else:
    ctypes.CDLL(None).mallopt(-1, 1 << 30)
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = (ctypes.c_void_p * 500)()  # made before them: a list that grows between the blocks would hold those below it
before = resident()
for i in range(len(blocks)):
    blocks[i] = libc.malloc(100_000)  # on the heap: smaller than what malloc maps apart
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks:
    libc.free(block)
print(resident() - before, os.environ.get("ONEDNN_PRIMITIVE_CACHE_CAPACITY"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is a function of glibc")
def test_freed_memory_is_returned_and_few_kernels_are_cached():
    (limited, kernels), (held, _) = (
        subprocess.run(
            [sys.executable, "-c", HELD.format(limited=limited)], check=True, capture_output=True, text=True
        ).stdout.split()
        for limited in (True, False)
    )
    assert int(limited) < 20e6 < 45e6 < int(held)
    assert kernels == "64"
