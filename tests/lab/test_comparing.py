"""What `compare` takes."""

import pytest

import sentloom
from sentloom.errors import InputError, SentloomError
from tests.api.small_pairs import PAIRS


def test_models_and_fits_are_referred_to_gate_and_evaluate(base, tmp_path):
    fitted = tmp_path / "new.fit"
    fitted.mkdir()
    (fitted / "report.json").write_text("{}")
    for model in (base, fitted):
        with pytest.raises(
            InputError, match=r"this is a model(.|\n)*sentloom gate .* OTHER FILE, or sentloom evaluate"
        ):
            sentloom.lab.compare([model, model], tmp_path / "out")


def test_refused_recipes_leave_nothing(tmp_path):
    with pytest.raises(InputError, match="no recipe is given"):
        sentloom.lab.compare([], tmp_path / "out")
    with pytest.raises(SentloomError, match="there is no variant 'x'"):
        sentloom.lab.compare("bsl/table-1", tmp_path / "out", variant="x", on=PAIRS)
    assert not (tmp_path / "out").exists()
