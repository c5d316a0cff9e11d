from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.data import Dataset, Shape, read
from sentloom.data.nli import is_nli_word, nli_label, pairs_from_nli, triplets_from_nli
from sentloom.errors import InputError


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ("entailment", "entailment"),
        (" ENTAILMENT ", "entailment"),
        ("entails", "entailment"),
        ("Neutral", "neutral"),
        ("contradictory", "contradiction"),
        ("not_entailment", "not_entailment"),
        ("not entailment", "not_entailment"),
        (0, "entailment"),
        ("1", "neutral"),
        (2, "contradiction"),
        ("-", None),
        (-1, None),
    ],
)
def test_labels(cell: object, label: str | None) -> None:
    assert nli_label(cell) == label


@pytest.mark.parametrize("cell", ["e", "", "3", None, True, 1.5, ["neutral"], "0.0"])
def test_other_labels_are_refused(cell: object) -> None:
    with pytest.raises(KeyError):
        nli_label(cell)


def test_numbers_are_not_nli_words() -> None:
    assert is_nli_word("Entailment")
    assert is_nli_word("-")
    assert not any(is_nli_word(cell) for cell in ("0", 0, "1.0", "-1", "duplicate", None))


def nli(path: Path, rows: list[tuple[str, str, str]]) -> Dataset:
    lines = ["premise\thypothesis\tlabel", *("\t".join(row) for row in rows)]
    file = path / "nli.tsv"
    file.write_text("\n".join(lines), encoding="utf-8")
    return read(file)


def test_the_kth_entailment_is_matched_with_the_kth_contradiction(tmp_path: Path) -> None:
    dataset = nli(
        tmp_path,
        [
            ("p", "p contradicts 1", "contradiction"),  # line 2
            ("q", "q entails 1", "entailment"),
            ("p", "p entails 1", "entailment"),  # line 4
            ("r", "r is alone", "entailment"),
            ("p", "p is neutral", "neutral"),
            ("q", "q contradicts 1", "contradiction"),
            ("p", "p entails 2", "entailment"),  # line 8
            ("p", "p contradicts 2", "contradiction"),
            ("p", "p contradicts 3", "contradiction"),
        ],
    )
    triplets = triplets_from_nli(dataset)
    assert triplets.shape is Shape.TRIPLETS
    assert triplets.take(range(len(triplets))) == {
        "anchor": ["p", "p", "q"],
        "positive": ["p entails 1", "p entails 2", "q entails 1"],
        "negatives": [["p contradicts 1"], ["p contradicts 2"], ["q contradicts 1"]],
    }
    assert [triplets.place(row).split(", ")[-1] for row in range(3)] == ["line 4", "line 8", "line 3"]


LABELS = st.sampled_from(["entailment", "neutral", "contradiction"])


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(st.sampled_from("pqrs"), LABELS), min_size=1, max_size=40))
def test_against_a_slow_oracle(rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("nli")
    dataset = nli(folder, [(premise, f"h{number}", label) for number, (premise, label) in enumerate(rows)])
    sides: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for number, (premise, label) in enumerate(rows):
        sides[premise][label].append(f"h{number}")
    expected = [
        (premise, entailed, [contradicted])
        for premise, of in sides.items()
        for entailed, contradicted in zip(of["entailment"], of["contradiction"], strict=False)
    ]
    if not expected:
        with pytest.raises(InputError, match="both an entailment and a contradiction"):
            triplets_from_nli(dataset)
        return
    triplets = triplets_from_nli(dataset)
    columns = triplets.take(range(len(triplets)))
    assert list(zip(columns["anchor"], columns["positive"], columns["negatives"], strict=True)) == expected


def test_other_shapes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises(InputError, match="its shape is texts"):
        triplets_from_nli(read(tmp_path / "a.txt"))


def test_a_premise_over_many_batches(tmp_path: Path) -> None:
    labels = ("entailment", "contradiction")
    rows = [(f"p{n % 3}", f"{label} {n}", label) for n in range(9) for label in labels]
    triplets = triplets_from_nli(nli(tmp_path, rows), batch_rows=2)
    order = [n for premise in range(3) for n in range(premise, 9, 3)]
    assert triplets.take(range(9))["positive"] == [f"entailment {n}" for n in order]
    assert triplets.take(range(9))["negatives"] == [[f"contradiction {n}"] for n in order]


def test_pairs_are_the_entailments_in_file_order(tmp_path: Path) -> None:
    rows = [
        ("p", "p neutral", "neutral"),
        ("p", "p entails 1", "entailment"),  # line 3
        ("q", "q contradicts", "contradiction"),
        ("q", "q entails", "entailment"),  # line 5
        ("p", "p entails 2", "entailment"),  # line 6
    ]
    dataset = nli(tmp_path, rows)
    pairs = pairs_from_nli(dataset)
    assert pairs.shape is Shape.PAIRS
    assert pairs.take(range(len(pairs))) == {
        "anchor": ["p", "q", "p"],
        "positive": ["p entails 1", "q entails", "p entails 2"],
    }
    assert [pairs.place(row).split(", ")[-1] for row in range(3)] == ["line 3", "line 5", "line 6"]
    assert pairs.skipped == {"rows without entailment": 2}
    assert pairs.used == {"anchor": "premise", "positive": "hypothesis"}
    assert len({pairs.sha256, dataset.sha256, triplets_from_nli(dataset).sha256}) == 3


def test_pairs_need_nli_with_an_entailment(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises(InputError, match="its shape is texts"):
        pairs_from_nli(read(tmp_path / "a.txt"))
    with pytest.raises(InputError, match="no row has the label entailment"):
        pairs_from_nli(nli(tmp_path, [("p", "h", "neutral")]))
