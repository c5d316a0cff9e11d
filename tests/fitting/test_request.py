"""The request: budgets as people write them, the command that repeats it, and where things go."""

from pathlib import Path

import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.fitting.request import Budget, Request


@pytest.mark.parametrize(
    ("text", "seconds", "steps"),
    [("90s", 90, None), ("10m", 600, None), ("1.5h", 5400, None), ("400steps", None, 400), (" 400 Steps ", None, 400)],
)
def test_a_time_or_a_number_of_steps(text, seconds, steps):
    assert Budget.parse(text) == Budget(seconds, steps)


@pytest.mark.parametrize("text", ["", "10", "m", "0m", "-5m", "0.5steps", "ten minutes", "10 m m", 6, None])
def test_what_is_no_budget(text):
    with pytest.raises(InputError, match="10m, 90s"):
        Budget.parse(text)


def request(**changes):
    plain = {
        "data": ("my faq.csv",),
        "output": Path("out/model"),
        "base": "embedded",
        "budget": "10m",
        "against": (),
        "general": None,
        "force": False,
        "synthesizer": None,
        "seed": 1,
    }
    return Request(**{**plain, **changes})


def test_everything_but_the_model_goes_beside_it(tmp_path, monkeypatch):
    assert request().folder == Path("out/model.fit")
    monkeypatch.chdir(tmp_path)
    assert request(output=Path()).folder == tmp_path.with_name(f"{tmp_path.name}.fit")


def test_the_command_repeats_every_option():
    assert request().command == "sentloom fit 'my faq.csv' -o out/model --base embedded --budget 10m --seed 1"
    full = request(
        against=("sts", "a.tsv"),
        general=Path("data"),
        synthesizer="writer",
        shape=Shape.PAIRS,
        columns={"anchor": "q", "positive": 2},
        force=True,
        strict=True,
    ).command
    assert full.endswith(
        "--against sts --against a.tsv --general data --synthesizer writer --shape pairs --columns anchor=q,positive=2 "
        "--force --strict"
    )


def test_recipes_in_another_folder_name_the_base_by_its_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    assert request(base="base").base_path == str(tmp_path / "base")
    assert request(base="some/hub-name").base_path == "some/hub-name"
    assert request().synthesizer_path is None
