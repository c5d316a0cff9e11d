"""Shuffled data has the same cells and nothing to learn; a whole run counts the verdicts."""

import gzip
import json
from collections import Counter

import pytest

from benchmarks.real_sets import tabled
from benchmarks.verdicts import NAMES, main, runs, shuffled, table

TEXTS = [f"text {n}" for n in range(100)]


def test_the_last_column_is_permuted():
    labels = [f"label {n % 5}" for n in range(100)]
    found = shuffled(tabled("labels", {"text": TEXTS, "label": labels}), 1)
    assert found["text"] == TEXTS
    assert Counter(found["label"]) == Counter(labels)
    kept = sum(one == other for one, other in zip(found["label"], labels, strict=True))
    assert 5 < kept < 40, "one in five by chance"


def test_half_of_the_triplets_are_swapped():
    columns = {"anchor": TEXTS, "positive": [f"p {n}" for n in range(100)], "negative": [f"n {n}" for n in range(100)]}
    found = shuffled(tabled("triplets", columns), 1)
    swapped = [text.startswith("n") for text in found["positive"]]
    assert sum(swapped) == 50
    assert [text.startswith("p") for text in found["negative"]] == swapped
    assert [text.split()[1] for text in found["positive"]] == [text.split()[1] for text in columns["positive"]]


def test_every_set_has_its_turn_on_both_kinds_of_data():
    every = runs(20)
    assert len(every) == len(set(every)) == 40
    assert Counter(name for name, _, _ in every) == dict.fromkeys(NAMES, 8)


def test_verdicts_are_counted():
    record = {"kind": "pairs", "verdict": "better"}
    worse = {**record, "verdict": "worse"}
    found = table({("selqa", False, 1): worse, ("selqa", True, 1): record, ("selqa", True, 2): record})
    assert "| shuffled | all |  | 1 | 0 | 0 | 1 | 0 |" in found
    assert "| learnable | selqa | pairs | 2 | 2 | 0 | 0 | 0 |" in found


@pytest.mark.long
def test_a_whole_run_resumes_and_ends_in_a_table(tmp_path, capsys):
    (tmp_path / "data/qa").mkdir(parents=True)
    rows = [f"What is the price of ticket {n}?\tTicket {n} costs {3 * n} euros.\tSelQA" for n in range(200)]
    with gzip.open(tmp_path / "data/qa/qa_pairs.en.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["question\tanswer\tsubset", *rows]) + "\n")
    given = [str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--fits", "1", "--rows", "150", "--budget", "4steps"]
    main(given)
    found = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    assert set(found) == {"selqa-shuffled-1", "selqa-learnable-1"}
    assert found["selqa-shuffled-1"]["verdict"] != "better"
    capsys.readouterr()
    main(given)
    assert capsys.readouterr().out.endswith((tmp_path / "out/table.md").read_text())
