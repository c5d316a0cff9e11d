"""Reads data files in forked children with limits on time and memory: a hang or a bomb costs a child, not the bench.

A job is a line of JSON on standard input, [action, path, output]; its outcome is a line of JSON on standard output.
Nothing is computed before the forks, so that no child inherits a half-used pool of threads.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import sentloom.cli
import sentloom.data.hygiene.cleaning
import sentloom.fitting.inputs
import sentloom.report.tables

CPU_SECONDS = 60  # of a child
SECONDS = 600  # by the clock, which only ends what waits for ever: the machine may be busy
MEMORY = 1 << 30  # bytes that a child may take beyond what it starts with


def status(name: str) -> int:
    """A number of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


Act = Callable[..., int]
WRITES = {"check": "--json", "clean": "-o"}  # the option of `sentloom check` that takes the output


def act(action: str, path: str, output: str) -> int:
    """One job, in a child: the exit code of the command; `fit` is the part of the command that reads."""
    if action == "fit":
        from sentloom.errors import SentloomError
        from sentloom.fitting.inputs import InputSource, look

        try:
            sys.stdout.write(f"{len(look([InputSource(path)])[0].data):,} rows\n")
        except SentloomError as error:
            sys.stderr.write(f"error: {error}\n")
            return 2
        return 0
    sys.argv = ["sentloom", "check", path, WRITES[action], output]
    try:
        sentloom.cli.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def child(job: list[str], log: Path, act: Act) -> None:
    """Run one job with its output in a file; never returns."""
    code = 1
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        room = status("VmSize") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        code = act(*job)
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(job: list[str], log: Path, act: Act = act, seconds: float = SECONDS) -> dict[str, object]:
    """What became of a job: its exit code (None: it was killed for its time), seconds and output."""
    start = time.monotonic()
    if not (process := os.fork()):
        child(job, log, act)
    while not (ended := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() - start > seconds:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return {"code": None, "said": f"killed after {seconds} seconds"}
        time.sleep(0.005)
    return {"code": os.waitstatus_to_exitcode(ended[1]), "said": log.read_text(errors="replace")}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for number, line in enumerate(sys.stdin):
        sys.stdout.write(json.dumps(run(json.loads(line), folder / f"{number}.log")) + "\n")
        sys.stdout.flush()
