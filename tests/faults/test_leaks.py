"""A thousand leaks planted in training data: all found at both places, and none where there is none."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.leaks import Kind, find_leaks
from sentloom.data.shapes import COLUMNS, Shape, arrow_type

FAULT = "13. evaluation sentences planted in training data"

EACH = 200
TRAINING_ROWS = 20_000
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyzäéßø"))


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTLOOM_SCRATCH", str(tmp_path))


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of random words, capitalised, with a comma and a full stop: no two have the same words."""
    random = np.random.default_rng(seed)
    words = ["".join(word) for word in random.choice(LETTERS, (count * 6, 7))]
    return [
        f"{words[at].capitalize()} {words[at + 1]} {words[at + 2]}, {words[at + 3]} {words[at + 4]} {words[at + 5]}."
        for at in range(0, len(words), 6)
    ]


def dataset(shape: Shape, file: str, columns: list[list]) -> Dataset:
    rows = len(columns[0])
    cells = {name: pa.array(column, arrow_type(name)) for name, column in zip(COLUMNS[shape], columns, strict=True)}
    table = pa.table({**cells, FILE: pa.array([0] * rows, pa.int32()), LINE: pa.array(range(1, rows + 1), pa.int64())})
    return Dataset(shape, table, (file,), "line", "")


def write_otherwise(text: str, kind: Kind) -> str:
    return {
        Kind.EXACT: text,
        Kind.CASE: text.upper(),
        Kind.SPACING: text.replace(" ", "  ").replace(",", " ,"),
        Kind.PUNCTUATION: text.replace(",", " -").replace(".", "!"),
    }[kind]


def test_a_thousand_planted_leaks() -> None:
    random = np.random.default_rng(11)
    evaluation = [sentences(3000, 1), sentences(3000, 2)]
    training = [sentences(TRAINING_ROWS, 3), sentences(TRAINING_ROWS, 4)]
    victims = random.permutation(3000)[: 5 * EACH].reshape(5, EACH)
    hosts = random.permutation(TRAINING_ROWS)[: 5 * EACH].reshape(5, EACH)
    expected: dict[Kind, set[tuple[str, str, str]]] = {}
    for kind, rows, places in zip(
        (Kind.EXACT, Kind.CASE, Kind.SPACING, Kind.PUNCTUATION), victims, hosts, strict=False
    ):
        for row, place in zip(rows, places, strict=True):
            side, host_side = random.integers(2, size=2)
            text = evaluation[side][row]
            training[host_side][place] = write_otherwise(text, kind)
            expected.setdefault(kind, set()).add((text, f"test.tsv, line {row + 1}", f"train.tsv, line {place + 1}"))
    for row, place in zip(victims[4], hosts[4], strict=True):
        one, two = evaluation[0][row], evaluation[1][row]
        training[0][place], training[1][place] = two, one
        found = f"test.tsv, line {row + 1}", f"train.tsv, line {place + 1}"
        expected.setdefault(Kind.SWAPPED, set()).add((f"{one} | {two}", *found))
        expected[Kind.EXACT] |= {(one, *found), (two, *found)}  # the sentences of a pair leak with it
    train = dataset(Shape.PAIRS, "train.tsv", training)
    test = dataset(Shape.SCORED_PAIRS, "test.tsv", [*evaluation, [1.0] * 3000])

    leaks = find_leaks(train, [test])

    reported: dict[Kind, set[tuple[str, str, str]]] = {}
    for leak in leaks.kept:
        reported.setdefault(leak.kind, set()).add((leak.text, leak.evaluation, leak.training))
    assert reported == expected
    assert leaks.counts == {kind: len(found) for kind, found in expected.items()}
    assert leaks.training_rows.tolist() == sorted(hosts.ravel().tolist())


def test_clean_data_has_none() -> None:
    train = dataset(Shape.PAIRS, "train.tsv", [sentences(TRAINING_ROWS, 5), sentences(TRAINING_ROWS, 6)])
    test = dataset(Shape.PAIRS, "test.tsv", [sentences(3000, 7), sentences(3000, 8)])
    leaks = find_leaks(train, [test])
    assert leaks.counts == {}
    assert leaks.kept == ()
    assert len(leaks.training_rows) == 0
