"""Speed and memory of reading folders of Markdown files and csv files of growing size.

Run as `python -m benchmarks.read_any [--files 10000,100000] [--rows 500000,5000000]`.

Each is read in a process of its own, as the commands do. Memory is the anonymous memory of that process and, beside it,
of the child processes that parse documents, at their greatest; what memory grows by is given as the exponent of the
number of files or rows (0: flat, 1: in proportion). The first line of progress is timed from the start of reading.
"""

import argparse
import math
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.read_memory import WORDS, status

PER_FOLDER = 100


def write_documents(folder: Path, count: int) -> None:
    """Markdown files of a title, three sections, a list and a link, 2 kB each."""
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=90)).capitalize() + "." for _ in range(500)]
    for number in range(count):
        part = folder / f"{number // PER_FOLDER:05}"
        part.mkdir(exist_ok=True)
        sections = "".join(
            f"## Part {at} of {number}\n\n{texts[(number + at) % 500]} Number {number}.\n\n"
            "- one\n- [two](../00000/0.md)\n\n"
            for at in range(3)
        )
        (part / f"{number}.md").write_text(f"# Topic {number}\n\n{texts[number % 500]}\n\n{sections}", "utf-8")


def write_csv(path: Path, rows: int) -> None:
    """Questions and answers of 5 to 15 words, all distinct by a running number."""
    draw = random.Random(1)
    sides = [" ".join(draw.choices(WORDS, k=draw.randint(5, 15))) for _ in range(1000)]
    with path.open("w", encoding="utf-8") as file:
        file.write("question,answer,id\n")
        for n in range(rows):
            file.write(f'{sides[n % 1000]} {n},"{sides[n * 7 % 1000]}, {n}",{n}\n')


class Memory(threading.Thread):
    """Samples the anonymous memory of this process, and of its children together."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.own = self.children = 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Sample ten times a second."""
        children = Path(f"/proc/self/task/{threading.main_thread().native_id}/children")
        while not self.ended.wait(0.1):
            self.own = max(self.own, status("RssAnon"))
            self.children = max(self.children, sum(anonymous(pid) for pid in children.read_text("ascii").split()))


def anonymous(pid: str) -> int:
    """The anonymous memory of a process; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def measure(path: Path) -> None:
    """Read, and print rows, seconds and the peaks of memory; meant for a fresh process."""
    from sentloom.data import read

    memory = Memory()
    memory.start()
    start = time.perf_counter()
    data = read(path, show_progress=True)
    seconds = time.perf_counter() - start
    memory.ended.set()
    memory.join()
    print(len(data), seconds, memory.own, memory.children)


def measured(path: Path) -> tuple[float, float, float, float, float]:
    """Rows, seconds, peaks of memory and seconds until the first progress, of a fresh process."""
    call = [sys.executable, "-m", "benchmarks.read_any", "--measure", str(path)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        start = time.perf_counter()
        process.stderr.readline()
        first = time.perf_counter() - start
        process.stderr.read()
        rows, seconds, own, children = map(float, process.stdout.read().split())
    return rows, seconds, own / 1e6, children / 1e6, first


def report(kind: str, sizes: list[int], folder: Path) -> None:
    """One line per size, and how memory grows from the first to the last."""
    peaks = []
    for size in sizes:
        path = folder / (f"{kind}-{size}" if kind == "documents" else f"{size}.csv")
        if kind == "documents":
            path.mkdir()
            write_documents(path, size)
        else:
            write_csv(path, size)
        rows, seconds, own, children, first = measured(path)
        peaks.append(own + children)
        print(
            f"{size:>10,} {kind}: {rows:,.0f} rows in {seconds:.1f} s, {size / seconds:,.0f} per second; "
            f"anonymous memory {own:,.0f} MB and {children:,.0f} MB of children; first progress after {first:.1f} s",
            flush=True,
        )
    if len(sizes) > 1:
        growth = math.log(peaks[-1] / peaks[0]) / math.log(sizes[-1] / sizes[0])
        print(f"{'':>10} memory grows with the {growth:.2f}th power of the size")


def main() -> None:
    """Write and read every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", default="10000,100000")
    parser.add_argument("--rows", default="500000,5000000")
    parser.add_argument("--measure", type=Path)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    for kind, sizes in (("documents", arguments.files), ("rows of csv", arguments.rows)):
        with tempfile.TemporaryDirectory() as folder:
            report(kind, [int(size) for size in sizes.split(",") if size], Path(folder))


if __name__ == "__main__":
    main()
