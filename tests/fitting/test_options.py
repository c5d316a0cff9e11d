"""An option of `fit` is declared once; everything else follows from the declaration."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import sentloom
from sentloom.fitting.options import OPTIONS, Options, plan_values, read_options
from sentloom.fitting.request import Request

ROOT = Path(sentloom.__file__).parents[2]
NEW = """
    patience: Annotated[
        int | None,
        Option("How many rounds may pass without a gain.", "ROUNDS", least=1, by_recipe=True),
    ] = None
"""
EVERYWHERE = """
import inspect, json, sys
import typer
from sentloom.cli import app
(option,) = [one for one in typer.main.get_command(app).commands["fit"].params if one.name == "patience"]
before = "torch" in sys.modules

from pathlib import Path
from sentloom.errors import SentloomError
from sentloom.fitting.options import plan_values
from sentloom.fitting.request import make_request
request = make_request(["faq.csv"], "model", {"patience": 3})
try:
    make_request(["a.yaml"], "model", {"patience": 3})
except SentloomError as error:
    refused = str(error)
content = dict.fromkeys(["base", "against", "general", "corpus", "force"])

import sentloom
facts = {
    "pytorch": before,
    "flag": [option.opts, option.metavar, option.help],
    "signature": str(inspect.signature(sentloom.fit).parameters["patience"]),
    "docstring": sentloom.fit.__doc__,
    "request": request.patience,
    "command": request.command,
    "plan": plan_values(request, content)["patience"],
    "refused": refused,
}
try:
    sentloom.fit("faq.csv", "model", patience="long")
except SentloomError as error:
    facts["wrong"] = str(error)
print(json.dumps(facts))
"""


def test_an_option_that_is_added_in_one_place_is_everywhere(tmp_path):
    shutil.copytree(ROOT / "src/sentloom", tmp_path / "src/sentloom", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tools/options.py", "docs/fit.md"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(ROOT / name, tmp_path / name)
    path = tmp_path / "src/sentloom/fitting/options.py"
    before, end = path.read_text("utf-8").split("\n\n\ndef _declared()")
    path.write_text(f"{before}{NEW.rstrip()}\n\n\ndef _declared(){end}", "utf-8")

    def run(*command):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
        return subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, text=True, capture_output=True)

    done = run("-c", EVERYWHERE)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    help_line = "How many rounds may pass without a gain."
    assert facts["pytorch"] is False
    assert facts["flag"] == [["--patience"], "ROUNDS", help_line]
    assert facts["signature"] == "patience: int | None = None"
    assert f"patience: {help_line}" in facts["docstring"]
    assert (facts["request"], facts["plan"]) == (3, 3)
    assert facts["command"].endswith(" --patience 3")
    assert "patience cannot be given with a recipe" in facts["refused"]
    assert "patience: found 'long'. Expected a whole number, or None" in facts["wrong"]
    assert run("tools/options.py", "--check").returncode == 1
    assert run("tools/options.py").returncode == 0
    row = f"| `--patience ROUNDS` | `patience` | {help_line} | the recipe sets it |"
    assert row in (tmp_path / "docs/fit.md").read_text("utf-8").splitlines()


def test_the_table_in_the_docs_is_what_is_declared():
    checked = subprocess.run([sys.executable, ROOT / "tools/options.py", "--check"], check=False)
    assert checked.returncode == 0, "run python tools/options.py"


CONTENT = dict.fromkeys(["base", "against", "general", "corpus", "force"])


@pytest.mark.parametrize(
    ("name", "value"), [("device", "cuda"), ("precision", "bf16"), ("group", ("thread",)), ("seed", 2)]
)
def test_a_plan_depends_on_values(name, value):
    plain = Options()
    assert plan_values(replace(plain, **{name: value}), CONTENT) != plan_values(plain, CONTENT)


@pytest.mark.parametrize("name", ["base", "against", "general", "corpus", "force"])
def test_a_plan_depends_on_the_content_of_what_is_named(name):
    plain, other = (
        Options(),
        Options(base=("other",), corpus=("b.txt",), against=("sts",), general=Path("x"), force=True),
    )
    assert plan_values(plain, CONTENT) == plan_values(other, CONTENT)
    assert plan_values(plain, {**CONTENT, name: "f00d"}) != plan_values(plain, CONTENT)
    with pytest.raises(KeyError, match=name):
        plan_values(plain, {known: "" for known in CONTENT if known != name})


def test_a_plan_does_not_depend_on_what_is_only_shown_or_found_in_the_rows():
    assert {option.name for option in OPTIONS.values() if option.plan == "no"} == {
        *("continue_", "labels", "reranker", "strict", "examples"),
    }


def test_values_of_a_plan_survive_json():
    request = Request(data=("a.csv",), output=Path("m"), dimensions=(8, 4), columns={"text": "body"}, group=("thread",))
    values = plan_values(request, CONTENT)
    assert json.loads(json.dumps(values)) == values


def test_what_is_given_is_read_as_it_is_declared():
    given = {
        "base": Path("a"),
        "dimensions": "64,32",
        "columns": "text=1",
        "shape": "texts",
        "general": "",
        "writer": "",
    }
    assert read_options(given) == {
        "base": ("a",),
        "dimensions": (64, 32),
        "columns": {"text": 1},
        "shape": sentloom.Shape.TEXTS,
        "general": None,
        "writer": None,
    }
    assert read_options(read_options(given | {"writer": "w", "general": "g"}))["base"] == ("a",)
