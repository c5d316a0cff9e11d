"""Clusters: what connects rows, what does not, and what happens when a cluster would be too large."""

from hashlib import sha256

import numpy as np
import pytest

from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.fitting.clusters import MOST_SHARE, find_clusters, rows_of
from tests.small_data import build_dataset


def words(number, kind=""):
    """A text that resembles no other."""
    return sha256(f"{kind} {number}".encode()).hexdigest()[:32]


def numbers(*datas, groups=()):
    return find_clusters([rows_of(f"file {at}", data, groups) for at, data in enumerate(datas)])


def others(count, start=1000):
    """Rows that are connected with nothing, so that small clusters stay below the limit."""
    return [(words(n, "q"), words(n, "a")) for n in range(start, start + count)]


def test_rows_that_share_a_text_are_one_cluster_also_through_others():
    rows = [("one", "a"), ("two", "a"), ("Two!", "b"), ("three", "b"), ("four", "c"), *others(100)]
    (clusters,) = numbers(build_dataset(Shape.PAIRS, rows)).numbers
    assert len(set(clusters[:4].tolist())) == 1
    assert len(set(clusters[4:].tolist())) == 101


def test_near_duplicates_are_connected_but_do_not_chain():
    """The second nearly repeats the first, the third the second, but not the first: it stays alone."""
    base = words(0) + words(1) + words(2)  # 96 characters, 92 shingles
    near = base[:-7] + "zyxwvut"  # 7 of 92 shingles differ: Jaccard 85 / 99
    far = "zyxwvut" + near[7:]
    rows = [(base,), (near,), (far,), *((words(n, "text"),) for n in range(100))]
    (clusters,) = numbers(build_dataset(Shape.TEXTS, rows)).numbers
    pairs = {clusters[0] == clusters[1], clusters[1] == clusters[2]}
    assert pairs == {True, False}  # which of the outer two is joined depends on the hashes alone
    assert clusters[0] != clusters[2]


def test_a_text_in_two_files_connects_their_rows():
    first_file = build_dataset(Shape.PAIRS, [("one", "a"), *others(60)])
    second_file = build_dataset(Shape.TEXTS, [("ONE",), *((words(n, "text"),) for n in range(60))])
    first, second = numbers(first_file, second_file).numbers
    assert first[0] == second[0]
    assert len({*first.tolist(), *second.tolist()}) == 121


def test_groups_and_ids_connect_rows(tmp_path):
    lines = [
        "question,answer,customer",
        "one,a,x",
        "two,b,x",
        "three,c,",
        "four,d,",
        *(",".join((*row, f"c{n}")) for n, row in enumerate(others(60))),
    ]
    (tmp_path / "faq.csv").write_text("\n".join(lines))
    data = read(tmp_path / "faq.csv", keep=("customer",))
    (clusters,) = numbers(data, groups=("customer",)).numbers
    assert clusters[0] == clusters[1]
    assert len(set(clusters[1:].tolist())) == 63  # an empty cell connects nothing


def test_a_cluster_above_the_limit_falls_back_to_the_grouping_text_and_says_so():
    """Every question has two answers of a ring, so that all rows are connected."""
    rows = [(words(n // 2, "q"), words((n + 1) // 2 % 60, "a")) for n in range(120)]
    clusters = numbers(build_dataset(Shape.PAIRS, rows))
    assert len(np.unique(clusters.numbers[0])) == 60
    (line,) = clusters.notes
    assert line.startswith("file 0: connecting rows by equal and nearly equal texts would put more than 5% of them")
    assert line.endswith("so they are clustered by the text in 'anchor' alone")


def test_near_duplicates_are_given_up_before_equal_texts():
    """A template of one sentence that only differs in a number at its end."""
    rows = [(f"{words(0)} {words(1)} the ticket has the number {n}", words(n // 2, "a")) for n in range(200)]
    clusters = numbers(build_dataset(Shape.PAIRS, rows))
    assert len(np.unique(clusters.numbers[0])) == 100
    assert clusters.notes[0].endswith("so they are clustered by equal texts")


def test_an_answer_to_too_many_questions_is_admitted():
    rows = [(words(n, "q"), "see the manual" if n < 30 else words(n, "a")) for n in range(100)]
    clusters = numbers(build_dataset(Shape.PAIRS, rows))
    assert clusters.notes[-1] == "file 0: 30% of the rows are in one cluster, which makes its intervals less reliable"


@pytest.mark.parametrize("size", [2, 5])
def test_small_clusters_in_small_data_are_no_reason_to_fall_back(size):
    rows = [(words(n, "q"), words(n // size, "a")) for n in range(100)]
    clusters = numbers(build_dataset(Shape.PAIRS, rows))
    assert clusters.notes == ()
    assert size / 100 <= MOST_SHARE
    assert len(np.unique(clusters.numbers[0])) == 100 // size


def test_a_group_that_is_too_large_has_no_effect_and_that_is_said(tmp_path):
    rows = [f"{7919**2 * n},{104729**2 * n},{'big' if n < 40 else n}" for n in range(1, 101)]
    (tmp_path / "faq.csv").write_text("question,answer,customer\n" + "\n".join(rows) + "\n")
    data = read(tmp_path / "faq.csv", keep=("customer",))
    clusters = numbers(data, groups=("customer",))
    assert len(set(clusters.numbers[0].tolist())) == 100
    (line,) = clusters.notes
    assert line.endswith("alone; 'customer' has no effect")
