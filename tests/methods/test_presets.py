"""What the methods leave open: presets are whole, and values that make no sense are refused."""

import pytest
from pydantic import ValidationError

from sentloom.errors import InputError
from sentloom.methods import METHODS, Method, read_presets
from sentloom.methods.registry import check_presets
from sentloom.methods.settings import Settings

STAGE = {"pooling", "max_length", "prompt"}  # settings of the encoder
CONTRASTIVE = ("simcse", "self-guided", "bootstrapped", "contrastive-bt")
CASES = [(name, preset) for name, method in METHODS.items() for preset in method.PRESETS]


def test_names():
    all_three = {"default", "paper", "official-code"}
    more = {
        "simcse": all_three | {"promptbert"},
        "contrastive": all_three | {"simcse", "simcse-large", "gense"},
        "contrastive-bt": all_three | {"bsl"},
        "bootstrapped": all_three | {"supervised", "multilingual"},
        "cross-lingual": {"default", "paper", "large"},
        "supervised": {"default", "paper"},
        "tsdae": {"default", "paper"},
        "margin-mse": {"default", "official-code"},
        "is-bert": {"default", "official-code"},
        "teacher": {"default", "ranking"},
        **{name: {"default"} for name in ("mlm", "cosent", "angle", "distill")},
    }
    for name, method in METHODS.items():
        assert set(method.PRESETS) == more.get(name, all_three)


def test_the_papers_numbers():
    assert METHODS["self-guided"].PRESETS["paper"]["betas"] == [0.9, 0.9]
    assert METHODS["bootstrapped"].PRESETS["official-code"]["learning_rate"] == 1e-4
    assert METHODS["bootstrapped"].PRESETS["official-code"]["pooling"] == "mean"  # from `default`
    supervised, multilingual = (METHODS["bootstrapped"].PRESETS[name] for name in ("supervised", "multilingual"))
    assert (supervised["learning_rate"], supervised["batch"], supervised["momentum"]) == (5e-5, 128, 0.9999)
    assert (multilingual["learning_rate"], multilingual["batch"], multilingual["predictor_depth"]) == (5e-5, 64, 3)
    assert METHODS["contrastive"].PRESETS["official-code"]["schedule"] == "linear"  # over that of `paper`
    assert METHODS["cross-lingual"].PRESETS["large"]["queue"] == 200_000
    simcse, large = (METHODS["contrastive"].PRESETS[name] for name in ("simcse", "simcse-large"))
    assert simcse | {"learning_rate": 1e-5} == large
    assert simcse["learning_rate"] == 5e-5
    own, theirs = METHODS["bootstrapped"].PRESETS["paper"], METHODS["contrastive-bt"].PRESETS["bsl"]
    assert own.items() <= theirs.items()  # Table 7 changes the objective only
    assert "freeze_layers" not in theirs


class Mine(Method):
    NAME = "mine"


@pytest.mark.parametrize(
    ("presets", "problem"),
    [
        ({"paper": {"epochs": 1}}, "no preset 'default'"),
        ({"default": {"epochs": 1, "epoch": 2}}, "preset default: the key 'epoch' is unknown"),
        (
            {"default": {"epochs": 1}, "paper": {"epochs": 0}},
            "preset paper: epochs is 0. Expected a number greater than 0",
        ),
        ({"default": {"batch": 8}}, "neither epochs nor steps"),
    ],
)
def test_presets_that_cannot_be_used_are_refused(presets, problem, monkeypatch):
    check_presets(Mine)
    monkeypatch.setattr(Mine, "PRESETS", presets)
    with pytest.raises(InputError, match=problem):
        check_presets(Mine)


def test_presets_lie_beside_the_method(tmp_path):
    (tmp_path / "mine.yaml").write_text("default: &a {epochs: 2, batch: 8}\npaper: {<<: *a, batch: 16}\n", "utf-8")
    presets = read_presets(str(tmp_path / "mine.py"))
    assert presets == {"default": {"epochs": 2, "batch": 8}, "paper": {"epochs": 2, "batch": 16}}


@pytest.mark.parametrize(("name", "preset"), CASES)
def test_every_key_of_a_preset_is_a_field_of_exactly_one_part_and_valid(name, preset):
    method, values = METHODS[name], METHODS[name].PRESETS[preset]
    parts = [set(method.Options.model_fields), set(Settings.model_fields), STAGE]
    for key in values:
        assert sum(key in part for part in parts) == 1, key
    for kind, fields in ((method.Options, parts[0]), (Settings, parts[1])):
        own = {key: value for key, value in values.items() if key in fields}
        made = kind(**own)
        assert made.model_dump(mode="json", include=set(own)) == own
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
        ("supervised", {"dropout_views": 3}),
        ("tsdae", {"deletion": 1.5}),
        ("supervised", {"temperature": 0}),
        ("cosent", {"temperature": 0}),
        ("angle", {"positive_from": 1.1}),
        ("angle", {"angle_weight": -1}),
    ],
)
def test_values_that_make_no_sense_are_refused(name, wrong):
    with pytest.raises(ValidationError):
        METHODS[name].Options(**wrong)


def test_shares_that_fill_all_are_taken():
    assert METHODS["mlm"].Options(masked=0.9, replaced=0.1).masked == 0.9
