"""`mine` on rows in memory."""

import pandas as pd

import sentloom
from tests.api.small_pairs import PAIRS


def test_mine_writes_triplets_of_a_data_frame(base, tmp_path):
    frame = pd.DataFrame({"question": [a for a, _ in PAIRS[:50]], "answer": [b for _, b in PAIRS[:50]], "n": range(50)})
    triplets, report = sentloom.lab.mine(frame, tmp_path / "t.jsonl", model=base, margin=-1.0, negatives=2)
    assert report.rows == 50
    assert [*sentloom.read(tmp_path / "t.jsonl")] == [*triplets]
    assert all(row["positive"] not in row["negatives"] for row in triplets)
