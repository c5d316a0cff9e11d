"""What `compare` takes."""

import pytest

import sentloom
from sentloom.errors import InputError, SentloomError
from tests.api.small_pairs import PAIRS


def test_options_of_training_are_refused_for_fits(tmp_path):
    fits = [tmp_path / "a.fit", tmp_path / "b.fit"]
    for fit in fits:
        fit.mkdir()
        (fit / "report.json").write_text("{}")
    wrong = {"seeds": 5, "variant": "a", "set": {"seeds": [1]}, "on": PAIRS, "data": "folder"}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=f"{name} cannot be used with fits"):
            sentloom.lab.compare(fits, **{name: value})


def test_models_are_no_fits(base, tmp_path):
    with pytest.raises(InputError, match=r"this is a model(.|\n)*sentloom evaluate .* OTHER --suite FILE"):
        sentloom.lab.compare([base, base], tmp_path / "out")
    fitted = tmp_path / "new.fit"
    (tmp_path / "new").symlink_to(base)
    fitted.mkdir()
    with pytest.raises(InputError, match=f"Compare the fits, as in {fitted}; or score"):
        sentloom.lab.compare([tmp_path / "new", fitted])


def test_refused_recipes_leave_nothing(tmp_path):
    with pytest.raises(InputError, match="no recipe is given"):
        sentloom.lab.compare([], tmp_path / "out")
    with pytest.raises(SentloomError, match="there is no variant 'x'"):
        sentloom.lab.compare("bsl/table-1", tmp_path / "out", variant="x", on=PAIRS)
    assert not (tmp_path / "out").exists()
