"""The walk of a row through a fit: the files of sentloom whose functions are called, in order, and how deep.

    python -m tests.fitting.walk [DATA] [--budget 30steps] [--base MODEL]

Imports do not count, nor do class bodies: only functions that run.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sentloom

PACKAGE = str(Path(sentloom.__file__).parent)
OPENING = "encoder/encoder.py", "load"  # the function that reads a model from disk
STEP = "training/loop.py", "step"  # one step of training


@dataclass
class Walk:
    """What was called while a function ran."""

    calls: dict[tuple[str, str], None] = field(default_factory=dict)  # files and functions, in order of the first call
    depth: int = 0  # frames of ours above a training step
    models: int = 0  # times that a model was read from disk
    steps: int = 0
    training: float = 0.0  # seconds in them
    seconds: float = 0.0
    _known: dict[CodeType, tuple[str, str] | None] = field(default_factory=dict)
    _began: float = 0.0

    @property
    def files(self) -> dict[str, str]:
        """Every file with the function of it that was called first."""
        first: dict[str, str] = {}
        for file, function in self.calls:
            first.setdefault(file, function)
        return first

    def of(self, work: Callable[[], Any]) -> "Walk":
        """Run `work` and watch it."""
        start = time.perf_counter()
        threading.setprofile(self._watch)
        sys.setprofile(self._watch)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            self.seconds = time.perf_counter() - start
        return self

    def _place(self, code: CodeType) -> tuple[str, str] | None:
        """The file and the name of a function of ours; None for any other code."""
        if code not in self._known:
            ours = code.co_filename.startswith(PACKAGE) and code.co_name != "<module>" and code.co_flags & 2
            self._known[code] = (code.co_filename[len(PACKAGE) + 1 :], code.co_name) if ours else None
        return self._known[code]

    def _watch(self, frame: FrameType, event: str, argument: object) -> None:
        place = self._place(frame.f_code)
        if place is None:
            return
        if event == "return" and place == STEP:
            self.training += time.perf_counter() - self._began
        if event != "call":
            return
        self.calls.setdefault(place)
        self.models += place == OPENING
        if place == STEP:
            self.steps, self._began = self.steps + 1, time.perf_counter()
            self.depth = max(self.depth, self._depth(frame))

    def _depth(self, frame: FrameType | None) -> int:
        count = 0
        while frame is not None:
            count, frame = count + (self._place(frame.f_code) is not None), frame.f_back
        return count


def walk_of_fit(data: Path, output: Path, **options: Any) -> Walk:
    """The walk of a fit as the command runs it."""
    from sentloom.cli import app

    said = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    command = ["fit", str(data), "-o", str(output), *said]
    return Walk().of(lambda: app(command, standalone_mode=False))


def main() -> None:
    """Print the walk of a fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--budget", default="30steps")
    parser.add_argument("--base")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        from tests.fitting import small_base

        data = asked.data or small_base.pairs(Path(folder) / "faq.tsv")
        base = asked.base or small_base.build_base(Path(folder))
        walk = walk_of_fit(data, Path(folder) / "model", base=base, budget=asked.budget)
    lines = [f"{number:>4} {file}: {function}" for number, (file, function) in enumerate(walk.files.items(), 1)]
    lines.append(f"{len(walk.files)} files; {walk.depth} frames above a step; {walk.models} models read from disk")
    lines.append(f"{walk.steps} steps in {walk.training:.1f} s of {walk.seconds:.1f} s")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
