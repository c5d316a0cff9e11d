"""Uses of test rows: what counts as another use, what as the same, and what happens to damaged records."""

import pytest

from sentloom.evaluation.task import Task
from sentloom.fitting.gate import record_use


def task(*numbers, name="faq.csv"):
    items = tuple((f"question {n}", f"answer {n}") for n in numbers)
    return Task(name, "mrr@10", {}, lambda lookup: {}, "", f"hash of {numbers}", items=items)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "test-uses"


def test_every_model_is_a_use_and_the_same_model_is_the_same_use(cache):
    rows = [task(*range(10))]
    assert [record_use(rows, model, "base").number for model in ("a", "b", "c", "b", "a", "d")] == [1, 2, 3, 2, 1, 4]
    assert len(list(cache.iterdir())) == 4


def test_rows_count_as_the_same_if_more_than_half_are_shared():
    record_use([task(*range(10))], "a", "base")
    assert record_use([task(*range(12))], "a", "base").number == 2  # a file that grew
    assert record_use([task(*range(4, 14))], "b", "base").number == 3
    assert record_use([task(*range(9, 19))], "b", "base").number == 1  # one or five of ten


def test_a_model_compared_with_itself_is_no_use(cache):
    rows = [task(*range(10))]
    assert record_use(rows, "a", "a").number == 1
    assert not cache.exists()
    assert [record_use(rows, model, "base").number for model in ("a", "b")] == [1, 2]
    assert record_use(rows, "b", "b").number == 2
    assert record_use(rows, "c", "base").number == 3


def test_a_comparison_with_another_model_is_a_use():
    rows = [task(*range(10))]
    assert [record_use(rows, "b", other).number for other in ("base", "a", "c", "a")] == [1, 2, 3, 2]


def test_case_punctuation_and_other_documents_do_not_start_the_count_again():
    asked = tuple((f"QUESTION {n}?", f"Answer {n}.") for n in range(10))
    louder = Task("faq.csv", "mrr@10", {"document": ["one more"]}, lambda lookup: {}, "", "another hash", items=asked)
    first, again = record_use([task(*range(10))], "a", "base"), record_use([louder], "a", "base")
    assert first == again
    assert record_use([louder], "b", "base").number == 2


def test_other_rows_have_a_count_of_their_own():
    first, second = record_use([task(1, 2)], "a", "base"), record_use([task(3, 4)], "b", "base")
    assert (first.number, second.number) == (1, 1)
    assert first.sha256 != second.sha256


def test_a_damaged_record_is_not_counted(cache, capsys):
    record_use([task(1, 2)], "a", "base")
    (file,) = cache.iterdir()
    file.write_text(file.read_text().replace('"number": 1', '"number": 7'))
    assert record_use([task(1, 2)], "b", "base").number == 1
    assert "is damaged and is not counted" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_is_reported(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "file"))
    assert record_use([task(1, 2)], "a", "base").number == 1
    assert "cannot be counted" in capsys.readouterr().err
