"""Help pages show what a value is, never a Python type."""

import pytest
from typer.testing import CliRunner

from sentloom.cli import app
from tests.cli.test_option_names import COMMANDS

TYPES = ("<bool>", "<str>", "<int>", "<float>", "<path>", "list[", "range]", "<int range>")


@pytest.mark.parametrize("arguments", [("--help",), *((name, "--help") for name in COMMANDS)], ids=" ".join)
def test_a_page_shows_no_python_types(arguments):
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    assert not [kind for kind in TYPES if kind in done.output]


def test_values_have_names():
    page = CliRunner().invoke(app, ("clean", "--help"), env={"COLUMNS": "200", "TERM": "dumb"}).output
    lines = {line.split()[1]: line.split() for line in page.splitlines() if line.startswith("\u2502    --")}
    assert lines["--min-words"][2] == "NUMBER"
    assert lines["--shape"][2] == "SHAPE"
    assert lines["--spreadsheet-safe"][2] == "In"  # a flag has no value
