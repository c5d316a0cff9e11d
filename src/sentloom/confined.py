"""Run one of our own files as a program in a child process that limits itself: for files that nobody has vouched for.

A hostile file can ask its parser for any amount of memory, never end, or crash it. In a child process that costs the
child. The child imports from where this process does, and only what its program imports.
"""

import os
import signal
import sys
from pathlib import Path


def command(program: str, *arguments: str) -> list[str]:
    """The call of a program; the folder that it is in is not searched for modules (-P)."""
    return [sys.executable, "-P", program, *arguments]


def environment() -> dict[str, str]:
    """The environment of this process, with its import path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def limit_seconds(seconds: int) -> None:
    """In the child: end by itself after this time, should the parent be killed; 0 takes the limit back."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def limit_memory(memory: int) -> None:
    """In the child: limit the address space to what is in use now and `memory` bytes more, where the system can."""
    statm = Path("/proc/self/statm")
    if statm.is_file():
        import resource

        used = int(statm.read_text("ascii").split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = used + memory if most == resource.RLIM_INFINITY else min(used + memory, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
