"""Queries: one per cluster of the test rows, and what they search."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.data.writers import write
from sentloom.errors import InputError
from sentloom.ticking.questions import asking_task, read_fit, read_queries, read_searched
from tests.small_data import build_dataset


def test_one_query_per_cluster_of_the_first_texts(tmp_path):
    pairs = build_dataset(Shape.PAIRS, [("red", "a"), ("Red ", "b"), ("blue", "c"), ("green", "d"), ("grey", "d")])
    clustered = pairs.derive(pairs.table.append_column("cluster", [[4, 1, 2, 3, 3]]), "clustered")
    (tmp_path / "data").mkdir()
    write(clustered, tmp_path / "data" / "1-pairs-test.parquet")
    write(build_dataset(Shape.TEXTS, [("raw",)]), tmp_path / "data" / "2-texts-test.parquet")
    found = read_queries(tmp_path)
    assert len(found) == 3, "red twice, green and grey are a cluster, and raw text counts only without labels"
    assert set(found) < {"red", "Red ", "blue", "green", "grey"}
    assert asking_task(found).items == tuple((query, "") for query in found)


def test_a_corpus_is_searched_as_a_whole_or_as_a_sample(fit_folder):
    whole = read_searched(fit_folder)
    assert len(whole.texts) == whole.of == 300
    some = read_searched(fit_folder, 50)
    assert (len(some.texts), some.of) == (50, 300)
    assert set(some.texts) < set(whole.texts)
    assert some == read_searched(fit_folder, 50)


def test_a_folder_without_a_finished_fit_is_refused(fit_folder, tmp_path):
    assert read_fit(fit_folder).label_free
    (fit_folder / "report.json").unlink()
    for folder, problem in ((fit_folder, "no finished fit"), (tmp_path / "no.fit", "no such folder")):
        with pytest.raises(InputError, match=problem):
            read_fit(folder)
