"""An option has one name: in the command line and in Python, and the same help wherever it appears."""

import inspect

import pytest
import typer

import sentloom
from sentloom import lab
from sentloom.cli import app
from sentloom.lab.making import Running

PRODUCT = typer.main.get_command(app).commands
LAB = PRODUCT["lab"].commands
COMMANDS = {**{name: PRODUCT[name] for name in PRODUCT if name != "lab"}, **{f"lab {name}": LAB[name] for name in LAB}}
FUNCTIONS = {
    **{name: getattr(sentloom, name) for name in ("fit", "evaluate", "shrink")},
    **{f"lab {name}": getattr(lab, name) for name in ("train", "compare", "reproduce", "mine", "synthesize")},
}
ONLY_COMMAND = {
    "lab train": {"dry_run"},
    "lab reproduce": {"dry_run"},
    "evaluate": {"published", "mteb"},
}  # they print, or hand over to another tool
ONLY_PYTHON = {"log", "show_progress"}  # a command prints and shows progress
# `export` takes a device only: its vectors are compared in fp32 (docs/export.md).
MODELS_RUN = "fit evaluate tick search predict dedupe encode serve shrink demo".split() + [
    f"lab {name}" for name in "train compare reproduce mine views translate geometry".split()
]


def option_names(command):
    """As users type them: `--cache-size` is cache_size; arguments by their own name."""
    names = set()
    for parameter in COMMANDS[command].params:
        long = [option for option in parameter.opts if option.startswith("--")]
        names.add(long[0].removeprefix("--").replace("-", "_") if long else parameter.name)
    return names - {"help"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_command_and_its_function_take_the_same_options(name):
    parameters = {known.rstrip("_") for known in inspect.signature(FUNCTIONS[name]).parameters}  # `continue` is a word
    assert option_names(name) - ONLY_COMMAND.get(name, set()) == parameters - ONLY_PYTHON


def test_the_product_is_shown_first_in_groups_and_the_rest_is_the_labs():
    panels: dict[str, list[str]] = {}
    for name, command in PRODUCT.items():
        panels.setdefault(command.rich_help_panel, []).append(name)
    first, *others = panels.values()
    assert first == ["fit", "check", "evaluate", "tick"]
    assert others == [
        ["choose", "gate"],
        ["search", "predict", "dedupe", "encode", "serve", "models"],
        ["export", "shrink"],
        ["demo", "lab"],
    ]
    assert set(LAB) == {
        *("train", "compare", "reproduce", "recipes", "init-model", "vocabulary"),
        *("synthesize", "mine", "views", "translate", "corpus", "geometry"),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_defaults_agree(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    for option in COMMANDS[name].params:
        if option.name in parameters and isinstance(option.default, int | float | str):
            assert option.default == parameters[option.name].default, option.name


@pytest.mark.parametrize("name", MODELS_RUN)
def test_device_and_precision_can_be_chosen_wherever_a_model_runs(name):
    assert {"device", "precision"} <= option_names(name)


def test_synthesize_has_ten_options_and_takes_device_and_precision_with_execution():
    assert len(option_names("lab synthesize") - {"raw"}) == 10
    assert {"device", "precision"} <= set(Running.model_fields)
    (execution,) = (one for one in COMMANDS["lab synthesize"].params if one.name == "execution")
    assert all(f"{name}=" in execution.help for name in Running.model_fields)


@pytest.mark.parametrize("name", [*COMMANDS, "lab"])
def test_every_command_and_option_is_described_in_a_sentence(name):
    command = {**COMMANDS, **PRODUCT}[name]
    for text in (command.help, *(parameter.help for parameter in command.params if parameter.name != "help")):
        assert text, name
        assert text[0].isupper() or not text[0].isalpha() or text.split()[0] in LOWER, text
        assert text.rstrip().endswith((".", ")", "...", "'")), text
        assert "a way that" not in text


LOWER = {"embedded,", "fp32,", "sts,", "exact,", "local,", "transformers,"}  # sentences that start with a value
