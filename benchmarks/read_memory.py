"""Peak memory and speed of reading five million rows: run as `python benchmarks/read_memory.py [ROWS]`.

The rows are read in a process of their own. Two figures of memory are printed. *Resident* is the kernel's peak
(ru_maxrss) and counts mapped pages of files, which the kernel drops whenever it needs room. *Anonymous* (RssAnon of
/proc/self/status, the greatest value of a sampling thread) is what the reader itself takes and cannot be dropped:
this is the one that has to stay flat while the file grows.
"""

import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

WORDS = ("the", "a", "river", "stone", "light", "green", "old", "house", "walks", "under", "quickly", "near", "morning")


def write_rows(path: Path, rows: int) -> None:
    """Write tsv pairs of 5 to 15 words a side, all distinct by a running number."""
    random.seed(1)
    sides = [" ".join(random.choices(WORDS, k=random.randint(5, 15))) for _ in range(1000)]
    with path.open("w", encoding="utf-8") as file:
        file.write("anchor\tpositive\n")
        for start in range(0, rows, 10_000):
            numbers = range(start, min(start + 10_000, rows))
            file.writelines(f"{sides[n % 1000]} {n}\t{sides[n * 7 % 1000]} {n}\n" for n in numbers)


def status(field: str) -> int:
    """Give a field of /proc/self/status in bytes; 0 where the system has none."""
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), 0)


class PeakAnonymous(threading.Thread):
    """Samples this process's anonymous memory until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.ended = 0, threading.Event()

    def run(self) -> None:
        """Sample fifty times a second."""
        while not self.ended.wait(0.02):
            self.peak = max(self.peak, status("RssAnon"))


def measure(path: Path) -> None:
    """Read the file and print the figures; meant for a fresh process."""
    from sentloom.data import read

    before = status("RssAnon")
    gauge = PeakAnonymous()
    gauge.start()
    start, processor = time.perf_counter(), time.process_time()
    dataset = read(path)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    gauge.ended.set()
    gauge.join()
    megabyte = 1e6
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"rows              {len(dataset):>12,}")
    print(f"file              {path.stat().st_size / megabyte:>12,.0f} MB")
    print(
        f"speed             {len(dataset) / seconds:>12,.0f} rows/s ({seconds:.1f} s, {processor:.1f} s of processor)"
    )
    print(f"peak resident     {resident / megabyte:>12,.0f} MB, mapped file pages included")
    print(f"peak anonymous    {gauge.peak / megabyte:>12,.0f} MB, of which {before / megabyte:,.0f} MB before reading")


def main() -> None:
    """Write the rows and measure in a fresh process."""
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]))
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.tsv"
        write_rows(path, rows)
        subprocess.run([sys.executable, __file__, "--measure", str(path)], check=True)


if __name__ == "__main__":
    main()
