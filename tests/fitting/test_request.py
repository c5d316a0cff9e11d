"""The request: budgets as people write them, the command that repeats it, and where things go."""

from pathlib import Path

import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import InputError, ModelError
from sentloom.fitting.options import as_dimensions
from sentloom.fitting.request import Budget, Request, refuse_bad_request


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
    return Request(**{"data": ("my faq.csv",), "output": Path("out/model"), **changes})


def test_everything_but_the_model_goes_beside_it(tmp_path, monkeypatch):
    assert request().folder == Path("out/model.fit")
    monkeypatch.chdir(tmp_path)
    assert request(output=Path()).folder == tmp_path.with_name(f"{tmp_path.name}.fit")


def test_the_command_repeats_every_option():
    assert request().command == "sentloom fit 'my faq.csv' -o out/model --base embedded --budget 10m --seed 1"
    full = request(
        base=("one", "two"),
        dimensions=(64, 32),
        against=("sts", "a.tsv"),
        general=Path("data"),
        writer="writer",
        shape=Shape.PAIRS,
        columns={"anchor": "q", "positive": 2},
        force=True,
        strict=True,
    ).command
    assert full.endswith(
        "--base one --base two --budget 10m --against sts --against a.tsv --general data --dimensions 64,32 "
        "--writer writer --force --seed 1 --shape pairs --columns anchor=q,positive=2 --strict"
    )


def test_recipes_in_another_folder_name_the_base_by_its_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    assert request(base=("base",)).base_paths == (str(tmp_path / "base"),)
    assert request(base=("some/hub-name",)).base_paths == ("some/hub-name",)
    assert request().writer_path is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base": ("one", "one")}, "one is named twice"),
        ({"dimensions": (64, 0)}, "0 is not a number of dimensions"),
        ({"dimensions": (64, 6.5)}, "6.5 is not a number of dimensions"),
        ({"dimensions": (64, 64)}, "given twice"),
        ({"writer": "https://example.org/v1"}, "the endpoint example.org needs a model"),
        ({"writer": "https://me:pass@example.org/v1", "writer_model": "m"}, "more than host and path"),
        ({"writer": "smollm2", "writer_model": "m"}, "writer_model can only be given for an endpoint"),
        ({"max_tokens": 9}, "max_tokens can only be given for an endpoint"),
    ],
)
def test_bases_dimensions_and_writers_that_make_no_sense(changes, said):
    with pytest.raises(InputError, match=said):
        refuse_bad_request(request(**changes))


@pytest.mark.parametrize("role", ["writer", "guide", "teacher"])
def test_models_that_are_not_there_are_refused_before_anything_is_read(role, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("nope", "nope/nope"):
        with pytest.raises(ModelError, match=f"model {name!r}: there is no such folder"):
            refuse_bad_request(request(**{role: (name,) if role == "teacher" else name}))
    refuse_bad_request(request(**{role: ("embedded",) if role == "teacher" else "embedded"}))


def test_dimensions_of_the_command():
    assert as_dimensions("384, 64") == (384, 64)
    for text in ("", "384,", "64.5", "a"):
        with pytest.raises(InputError, match="384,256,128,64"):
            as_dimensions(text)
