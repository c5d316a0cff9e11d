"""Help pages show what a value is, never a Python type."""

import pytest
from typer.testing import CliRunner

from sentloom.cli import app
from sentloom.errors import InputError
from tests.cli.test_option_names import COMMANDS

TYPES = ("<bool>", "<str>", "<int>", "<float>", "<path>", "list[", "range]", "<int range>")


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("lab", "--help"), *((*name.split(), "--help") for name in COMMANDS)],
    ids=" ".join,
)
def test_a_page_shows_no_python_types(arguments):
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    assert not [kind for kind in TYPES if kind in done.output]


def test_values_have_names():
    page = CliRunner().invoke(app, ("check", "--help"), env={"COLUMNS": "200", "TERM": "dumb"}).output
    lines = {line.split()[1]: line.split() for line in page.splitlines() if line.startswith("\u2502 --")}
    assert lines["--min-words"][2] == "NUMBER"
    assert lines["--shape"][2] == "SHAPE"
    assert lines["--spreadsheet-safe"][2] == "In"  # a flag has no value


def test_a_switch_that_is_off_shows_no_default_that_reads_as_on():
    page = CliRunner().invoke(app, ("fit", "--help"), env={"COLUMNS": "200", "TERM": "dumb"}).output
    (line,) = (line for line in page.splitlines() if "--no-examples" in line)
    assert "By default they show some." in line
    assert "True" not in page


def test_a_paragraph_is_broken_only_where_the_window_ends():
    page = CliRunner().invoke(app, ("check", "--help"), env={"COLUMNS": "500", "TERM": "dumb"}).output
    assert "and 1 if --against finds evaluation sentences in it." in page


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_cut_in_a_narrow_window_and_values_say_what_they_are(name):
    page = CliRunner().invoke(app, (*name.split(), "--help"), env={"COLUMNS": "80", "TERM": "dumb"}).output
    assert "\u2026" not in page
    assert "{" not in page
    assert {line.split()[1] for line in page.splitlines() if "TEXT" in line.split()} <= {"--prefix"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shape", "pair"), "--shape: pair cannot be used. Expected one of texts, pairs, triplets, scored-pairs, "),
        (("--shape", "pair"), "\nDid you mean pairs?"),
        (("--precision", "fp16"), "--precision: fp16 cannot be used. Expected one of fp32, bf16.\n"),
        (("--seed", "-1"), "--seed: -1 cannot be used. Expected a number greater than or equal to 0.\n"),
        (("--seed", "x"), "--seed: x cannot be used. Expected a whole number.\n"),
    ],
)
def test_a_refused_value_is_explained_in_a_sentence(arguments, message):
    done = CliRunner().invoke(app, ("fit", "faq.csv", "-o", "model", *arguments))
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
