"""Write a small file, read it, and list the rows and lines of pairs."""

from pathlib import Path

from sentloom.data import read


def file(folder: Path, name: str, text: str):
    (folder / name).write_text(text, encoding="utf-8")
    return read(folder / name)


def rows(pairs):
    cells = pairs.take(range(len(pairs)))
    return list(zip(cells["anchor"], cells["positive"], strict=True))


def lines(pairs):
    return [int(pairs.place(row).rpartition(" ")[2]) for row in range(len(pairs))]
