"""Sets with a probe: editions, the rows it learns from, and its settings."""

from dataclasses import replace

from sentloom.evaluation.set_source import SetSource
from sentloom.lab.suites.probed_sets import FAST_ROWS, probed_task
from sentloom.lab.suites.transfer import TRANSFER, TRANSFER_SETS, TRANSFER_TABLE
from tests.evaluation.small_sets import fast, lookup, put, reviews

PARTS = TRANSFER_TABLE.parts


def test_fast_trains_on_a_sample_of_ten_thousand(tmp_path):
    put(tmp_path, "senteval/SST2.train", reviews(FAST_ROWS + 50))
    put(tmp_path, "senteval/SST2.dev", [(1, "good dev"), (0, "bad dev")])
    put(tmp_path, "senteval/SST2.test", [(1, "good test"), (0, "bad test")])
    task, again = (TRANSFER.load("SST-2", fast(tmp_path)) for _ in range(2))
    *drawn, _, _, _, _ = task.texts["symmetric"]
    order = {text: place for place, (_, text) in enumerate(reviews(FAST_ROWS + 50))}
    assert len(drawn) == len(set(drawn)) == FAST_ROWS
    assert [order[text] for text in drawn] == sorted(order[text] for text in drawn)
    assert again.texts == task.texts
    assert task.settings.others["train_rows"] == FAST_ROWS
    assert "the probe was trained on 10,000 of 10,050 rows, sampled with seed 1111" in task.notes
    assert task.score(lookup)["accuracy"].items.tolist() == [[1, 1], [0, 0]]  # labels stay with their texts
    whole = TRANSFER.load("SST-2", SetSource(tmp_path, checked=False))
    assert whole.settings.others["train_rows"] == FAST_ROWS + 50
    assert whole.sha256 == task.sha256


def test_a_hidden_layer_changes_the_settings(tmp_path):
    put(tmp_path, "senteval/MR", reviews(20))
    task = TRANSFER.load("MR", SetSource(tmp_path, False, {"preset": "fast", "hidden": 50}))
    assert task.settings.others["hidden"] == 50


def test_the_first_complete_edition_is_used(tmp_path):
    (whole,) = TRANSFER_SETS["SST-2"]
    other = replace(whole, train=replace(PARTS["MR"], labels=None), test=None, dev=None, note="another edition")
    put(tmp_path, "senteval/SST2.train", reviews(4))  # the first edition's dev and test parts are missing
    put(tmp_path, "senteval/MR", reviews(6))
    task = probed_task([whole, other], fast(tmp_path))
    assert len(task.texts["symmetric"]) == 6
    assert "another edition" in task.notes
