"""A model that is continued with more rows."""

import pytest

from sentloom import fit
from sentloom.errors import InputError
from sentloom.fitting.clusters import distinct_keys
from sentloom.fitting.stored import stored_rows
from tests.fitting.test_classifying import labelled, write


@pytest.fixture(scope="module")
def old(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    return fit(write(folder / "old.tsv", labelled(160, 1)), folder / "old", base=base, budget="20steps", force=True)


def texts(folder, side):
    return {text for rows in stored_rows(folder, side).values() for data in rows for text in data["text"]}


def test_earlier_rows_train_again_and_test_rows_stay(old, tmp_path):
    fresh = labelled(300, 2)
    done = fit(write(tmp_path / "more.tsv", fresh), tmp_path / "new", continue_=old.model, budget="20steps", force=True)
    before, after = old.model.with_name("old.fit"), tmp_path / "new.fit"
    assert texts(before, "test") <= texts(after, "test")
    assert not texts(before, "test") & texts(after, "train")
    kept = texts(before, "train") & texts(after, "train")
    assert len(kept) > 0.9 * len(texts(before, "train"))
    assert texts(after, "train") & {text for text, _ in fresh}
    assert texts(after, "test") & {text for text, _ in fresh}
    assert not {*distinct_keys([*stored_rows(after, "train")[1]])} & {*distinct_keys([*stored_rows(after, "test")[1]])}
    assert done.result.base == str(old.model)  # which it has to beat
    assert any("an index of those must be rebuilt" in warning for warning in done.result.warnings)


def test_a_model_is_never_continued_in_place(old, tmp_path):
    with pytest.raises(InputError, match="this is the base itself"):
        fit(write(tmp_path / "more.tsv", labelled(60, 3)), old.model, continue_=old.model, budget="10steps")


def test_a_model_that_no_fit_wrote_cannot_be_continued(base, tmp_path):
    with pytest.raises(InputError, match="a model that `sentloom fit` wrote"):
        fit(write(tmp_path / "more.tsv", labelled(60, 3)), tmp_path / "new", continue_=base, budget="10steps")


def test_rows_of_another_kind_are_refused(old, tmp_path):
    pairs = [(f"{text} one", f"{text} two") for text, _ in labelled(80, 4)]
    with pytest.raises(InputError, match="these are pairs, and the model was fitted to classification"):
        fit(pairs, tmp_path / "new", continue_=old.model, budget="10steps")


def test_the_base_is_not_given_beside(old, base, tmp_path):
    with pytest.raises(InputError, match="starts from it"):
        fit(write(tmp_path / "more.tsv", labelled(60, 3)), tmp_path / "new", continue_=old.model, base=base)
