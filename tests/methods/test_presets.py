"""What the methods leave open: presets are whole, and values that make no sense are refused."""

import pytest
from pydantic import ValidationError

from sentloom.methods import METHODS
from sentloom.training.settings import Settings

STAGE = {"pooling", "max_length"}  # said of the encoder, not of method or training
CONTRASTIVE = ("simcse", "self-guided", "bootstrapped", "contrastive-bt")
CASES = [(name, preset) for name, method in METHODS.items() for preset in method.PRESETS]


def test_names():
    assert {"simcse", "self-guided", "bootstrapped", "mlm", "contrastive-bt"} <= set(METHODS)
    for name, method in METHODS.items():
        assert name == method.NAME
        assert "default" in method.PRESETS
        assert {"default", "paper", "official-code"} <= set(method.PRESETS)
    assert set(METHODS["contrastive"].PRESETS) == {"default", "paper", "official-code", "simcse", "gense"}


@pytest.mark.parametrize(("name", "preset"), CASES)
def test_every_key_of_a_preset_is_a_field_of_exactly_one_part_and_valid(name, preset):
    method, values = METHODS[name], METHODS[name].PRESETS[preset]
    parts = [set(method.Options.model_fields), set(Settings.model_fields), STAGE]
    for key in values:
        assert sum(key in part for part in parts) == 1, key
    for kind, fields in ((method.Options, parts[0]), (Settings, parts[1])):
        given = {key: value for key, value in values.items() if key in fields}
        made = kind(**given)
        assert {key: getattr(made, key) for key in given} == given
    assert not parts[0] & parts[1]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *((name, {"temperature": value}) for name in CONTRASTIVE for value in (0, -1)),
        ("self-guided", {"layers": []}),
        ("self-guided", {"head_width": 0}),
        ("self-guided", {"regularizer": -0.1}),
        ("self-guided", {"objective": "opt4"}),
        ("contrastive-bt", {"head_width": 0}),
        ("contrastive-bt", {"regularizer": -0.1}),
        ("bootstrapped", {"momentum": 1.1}),
        ("bootstrapped", {"momentum": -0.1}),
        ("bootstrapped", {"predictor_depth": 0}),
        ("bootstrapped", {"predictor_width": 0}),
        ("bootstrapped", {"scale": 0}),
        ("mlm", {"share": 1.5}),
        ("mlm", {"masked": 0.8, "replaced": 0.3}),
        ("mlm", {"masked": -0.1}),
        ("simcse", {"tempreature": 0.05}),
    ],
)
def test_values_that_make_no_sense_are_refused(name, wrong):
    with pytest.raises(ValidationError):
        METHODS[name].Options(**wrong)


def test_shares_that_fill_all_are_taken():
    assert METHODS["mlm"].Options(masked=0.9, replaced=0.1).masked == 0.9
