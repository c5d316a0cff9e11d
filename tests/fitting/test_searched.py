"""What queries search: every candidate, or all held-out ones and a sample of the others."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.request import Budget, Request
from sentloom.fitting.shapes import PAIRS, PARALLEL
from sentloom.fitting.shapes.classification import FEWEST_LABELLED, labelled_rows
from sentloom.fitting.shapes.searching import all_candidates
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import (
    MOST_CANDIDATES,
    Candidates,
    affordable_candidates,
    read_corpus,
)
from tests.small_data import build_dataset


def split(shape=Shape.PAIRS, train=30):
    parts = [("t", train), ("v", 3), ("p", 3), ("d", 2)]
    return Split(
        *(build_dataset(shape, [(f"{kind}q {n}", f"{kind}a {n}") for n in range(size)]) for kind, size in parts)
    )


def test_all_candidates_come_once_with_the_held_out_ones_first():
    candidates = all_candidates(PAIRS, split(train=2), ["more", "ta 0"])
    assert candidates == ["va 0", "va 1", "va 2", "pa 0", "pa 1", "pa 2", "da 0", "da 1", "ta 0", "ta 1", "more"]


def test_without_a_limit_everything_is_searched():
    corpus = PAIRS.corpus(split(), ["more"], 100)
    assert [len(data) for data in corpus.known] == [3, 3, 2]  # validation, test, dropped
    assert set(corpus.texts) == {*(f"ta {n}" for n in range(30)), "more"}


def test_a_sample_has_all_held_out_candidates_and_is_the_same_every_time():
    sample, again = (PAIRS.corpus(split(), [], 18) for _ in range(2))
    assert sample.texts == again.texts
    assert len(sample.texts) == 18 - 8
    assert set(sample.texts) < {f"ta {n}" for n in range(30)}
    assert PAIRS.corpus(split(), [], 3).texts == ()  # held-out candidates are always searched
    assert [len(data) for data in PAIRS.corpus(split(), [], 3).known] == [3, 3, 2]


def test_translations_are_sampled_by_row():
    corpus = PARALLEL.corpus(split(Shape.PARALLEL), [], 10)
    assert [len(data) for data in corpus.known] == [3, 3, 2, 10]


def test_a_budget_in_steps_depends_on_no_clock():
    assert affordable_candidates(0.01, Budget(None, 40)) == Candidates(MOST_CANDIDATES, MOST_CANDIDATES)


def test_a_longer_budget_searches_more():
    """Of 600 s, 90 s are for two models on test rows, and 120 s for ten runs on validation rows."""
    assert affordable_candidates(0.01, Budget(600, None)) == Candidates(1200, 4500)
    assert affordable_candidates(0.01, Budget(60, None)) == Candidates(120, 450)


@pytest.mark.parametrize(("most", "count"), [(50_000, 1500), (1200, 1200), (3, FEWEST_LABELLED)])
def test_labelled_texts_look_for_neighbours_among_as_many_rows_as_there_is_time_for(most, count):
    rows = [(f"text {n}", str(n % 7)) for n in range(1500)]
    parts = [build_dataset(Shape.CLASSIFICATION, part) for part in (rows, rows[:3], rows[:3], rows[:1])]
    assert len(labelled_rows(Split(*parts), most)) == count


def test_a_sample_of_labelled_rows_has_every_held_out_label_once_at_least():
    """Of 3,000 labels with two rows each, 1,000 rows are searched; 60 labels are asked for."""
    rows = [(f"text {n}", f"label {n // 2}") for n in range(6000)]
    held_out = [[(f"{kind} {n}", f"label {n + shift}") for n in range(30)] for kind, shift in (("v", 0), ("t", 2900))]
    parts = [build_dataset(Shape.CLASSIFICATION, part) for part in (rows, *held_out, rows[:1])]
    kept = labelled_rows(Split(*parts), 10).column("label").to_pylist()
    assert len(kept) == FEWEST_LABELLED
    assert {label for part in held_out for _, label in part} <= set(kept)
    assert len(set(kept)) > 600  # others are there, so that labels can be confused


def test_the_users_corpus_is_read_once_per_text(tmp_path):
    (tmp_path / "more.txt").write_text("One more text.\nAnother.\nOne more text.\n")
    (tmp_path / "faq.csv").write_text("question,answer\nwhere,Here.\nwhen,Now.\n")
    names = tuple(str(tmp_path / name) for name in ("more.txt", "faq.csv"))
    request = Request(data=("x.txt",), output=tmp_path / "m", budget="1m", corpus=names)
    assert read_corpus(request) == ("One more text.", "Another.", "Here.", "Now.")
