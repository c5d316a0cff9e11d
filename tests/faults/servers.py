"""`sentloom serve` in a child that is forked from this warm process, so that fifty starts take a minute."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.commands import Child, begin

STARTS_WITHIN = 120  # seconds


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[tuple[int, Child]]:
    """A running server's port and process; what it prints goes to a file in the folder."""
    log = folder / "serve.log"
    log.unlink(missing_ok=True)
    child = begin(folder, log, ["serve", *arguments, "--port", "0"])
    try:
        yield _port(child), child
    finally:
        child.kill()


def _port(child: Child) -> int:
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and child.poll() is None:
        if child.log.exists() and (found := re.search(r"Serving at http://127\.0\.0\.1:(\d+)", child.log.read_text())):
            return int(found[1])
        time.sleep(0.02)
    raise AssertionError(child.log.read_text() if child.log.exists() else "the server printed nothing")
