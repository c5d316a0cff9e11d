"""Read files in child processes with limits of size, memory and time, and answer in the order of the files.

A file that breaks a limit, or its parser, is left out with the reason; its process is replaced.
"""

import json
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import cycle
from pathlib import Path
from time import monotonic
from typing import Any

from sentloom import confined
from sentloom.data.documents import child

Answer = dict[str, Any]  # title and passages, or `why` there are none
MOST_BYTES = 100_000_000  # of a file
MEMORY = 1 << 30  # bytes, of a process beside its programs
SECONDS = 30  # for a file
MOST_PROCESSES = 8
FILES_EACH = 200  # per process: with fewer files, starting another one costs more than it saves
WAITING = 16  # files that a process has been told of
CHUNK = 1 << 16


class Worker:
    """A child process, and the files that it has been told of but not answered yet."""

    def __init__(self, program: str, options: Mapping[str, Any], limits: "Limits") -> None:
        self._program, self._options, self._limits = program, options, limits
        self._waiting: deque[str] = deque()
        self._start()

    def _start(self) -> None:
        call = confined.command(self._program, json.dumps({**self._options, **self._limits.for_child()}))
        pipe, silent = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=silent, env=confined.environment())
        self._received = b""

    def ask(self, path: str) -> None:
        """Name a file to read."""
        self._waiting.append(path)
        self._send(path)

    def _send(self, path: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the process has ended: the next answer says so
            self._process.stdin.write(json.dumps(path).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self) -> Answer:
        """The answer for the first file that waits."""
        self._waiting.popleft()
        answer = self.more()
        if answer.pop("ended", False):
            self.stop()
            self._start()
            for name in self._waiting:
                self._send(name)
        return answer

    def more(self) -> Answer:
        """The next part of an answer that has several."""
        line, why = self._line(monotonic() + self._limits.seconds)
        answer: Answer = json.loads(line) if line else {"why": why, "ended": True}
        return answer

    def _line(self, until: float) -> tuple[bytes, str]:
        """A line of output, or nothing and the reason."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            parts = [self._received]
            while b"\n" not in parts[-1]:
                if not ready.select(max(0.0, until - monotonic())):
                    return b"", f"takes more than {self._limits.seconds} s"
                part = os.read(self._process.stdout.fileno(), CHUNK)
                if not part:
                    return b"", "its reader crashed"
                parts.append(part)
        line, _, self._received = b"".join(parts).partition(b"\n")
        return line, ""

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


class Limits:
    """What one file may cost."""

    def __init__(self, seconds: int = SECONDS, memory: int = MEMORY, most_bytes: int = MOST_BYTES) -> None:
        self.seconds, self.memory, self.most_bytes = seconds, memory, most_bytes

    def for_child(self) -> dict[str, int]:
        """What the child is told."""
        return {"seconds": self.seconds, "memory": self.memory, "bytes": self.most_bytes}


def read_documents(
    paths: Sequence[Path], encoding: str | None = None, limits: Limits | None = None
) -> Iterator[Answer]:
    """The answer for every file, in order."""
    count = max(1, min(MOST_PROCESSES, os.cpu_count() or 1, 1 + len(paths) // FILES_EACH))
    with ExitStack() as stack:
        workers = [Worker(child.__file__, {"encoding": encoding}, limits or Limits()) for _ in range(count)]
        for worker in workers:
            stack.callback(worker.stop)
        turns, answers = cycle(workers), cycle(workers)
        asked = 0
        for number in range(len(paths)):
            while asked < min(len(paths), number + WAITING * count):
                next(turns).ask(str(paths[asked]))
                asked += 1
            yield next(answers).answer()
