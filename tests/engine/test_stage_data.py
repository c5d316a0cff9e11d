"""The rows of a stage: joined, reduced to a share, and free of sentences of the evaluation sets."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.engine.rows import clean_data, read_data, refuse_leaks, share_of
from sentloom.errors import InputError
from tests.small_data import build_dataset

EVALUATED = [build_dataset(Shape.TEXTS, [("a sentence that is scored on",)], "scored.tsv")]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.txt").write_text("one\na sentence that is scored on\n")
    (tmp_path / "b.tsv").write_text("question\tanswer\ntwo\tthree\n")
    return [str(tmp_path / name) for name in ("a.txt", "b.tsv")]


def simcse(data, **values):
    return stage("simcse", name="s", data=data, steps=1, **values)


def test_files_of_several_shapes_are_joined_as_texts(files):
    data = read_data(simcse(files))
    assert data.column("text").to_pylist() == ["one", "a sentence that is scored on", "two", "three"]
    assert data.place(3) == f"{files[1]}, line 2"


def test_leaks_are_refused_dropped_or_counted_as_the_stage_says(files):
    strict = simcse(files[0])
    with pytest.raises(InputError, match=r"stage s, .*a\.txt, line 2.*1 of its sentences are also scored on"):
        refuse_leaks(strict, clean_data(strict, EVALUATED), EVALUATED)
    dropping = simcse(files[0], drop_leaks=True)
    clean = clean_data(dropping, EVALUATED)
    assert clean.column("text").to_pylist() == ["one"]
    assert refuse_leaks(dropping, clean, EVALUATED) == 0
    open_stage = simcse(files[0], transductive=True)
    assert refuse_leaks(open_stage, clean_data(open_stage, EVALUATED), EVALUATED) == 1


def test_a_smaller_share_is_part_of_a_larger_one():
    data = build_dataset(Shape.TEXTS, [(f"text {number}",) for number in range(400)])
    small, large = (set(share_of(data, share).column("text").to_pylist()) for share in (0.2, 0.6))
    assert small < large
    assert 40 < len(small) < 120
    assert 180 < len(large) < 300
    with pytest.raises(InputError, match="has no rows"):
        share_of(build_dataset(Shape.TEXTS, [("text 0",)]), 0.0001)
