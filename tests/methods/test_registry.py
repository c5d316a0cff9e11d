"""Methods by name: built in, or from installed packages, here real ones on the path of a process of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from sentloom.methods import METHODS, Method
from sentloom.methods.registry import BUILT_IN

GOOD = """
from sentloom.methods import Method

class Mine(Method):
    NAME = "mine"
"""


def test_the_built_in_methods():
    assert list(METHODS)[: len(BUILT_IN)] == list(BUILT_IN)
    for name in BUILT_IN:
        assert issubclass(METHODS[name], Method)
        assert name == METHODS[name].NAME
    assert "wmd" not in METHODS
    with pytest.raises(KeyError):
        METHODS["wmd"]


def install(folder: Path, package: str, code: str, entry_points: str) -> None:
    """What pip leaves in site-packages: the module and its metadata."""
    (folder / f"{package}.py").write_text(code, "utf-8")
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[sentloom.methods]\n{entry_points}\n", "utf-8")


def run(folder: Path, code: str) -> str:
    """What a process prints that sees the packages in a folder; an error of ours by its text."""
    setup = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from sentloom.errors import InputError\nfrom sentloom.methods import METHODS\n"
    )
    guarded = "try:\n" + "".join(f"    {line}\n" for line in code.splitlines()) + "except InputError as e: print(e)\n"
    done = subprocess.run([sys.executable, "-c", setup + guarded], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_package_offers_a_method_and_is_imported_when_asked(tmp_path):
    install(tmp_path, "mypackage", GOOD, "mine = mypackage:Mine")
    found = run(
        tmp_path,
        "print('mine' in METHODS, list(METHODS)[-1], 'mypackage' in sys.modules, 'sentloom.methods.mlm' in sys.modules)\n"
        "print(METHODS['mine'].__name__, METHODS['mine'] is METHODS['mine'])",
    )
    assert found == "True mine False False\nMine True\n"


def test_a_built_in_name_is_not_replaced(tmp_path):
    install(tmp_path, "mypackage", GOOD, "simcse = mypackage:Mine")
    assert run(tmp_path, "print(METHODS['simcse'].__module__)") == "sentloom.methods.simcse\n"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        pytest.param(
            "import no_such_module",
            "cannot be imported (ModuleNotFoundError(\"No module named 'no_such_module'\"))",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "raise RuntimeError('no GPU')", "cannot be imported (RuntimeError('no GPU'))", marks=pytest.mark.long
        ),
        pytest.param("Other = 1", "cannot be imported (AttributeError(", marks=pytest.mark.long),
        ("class Mine: pass", "but that is not a subclass of sentloom.methods.Method"),
        pytest.param(
            "Mine = 'a text'", "but that is not a subclass of sentloom.methods.Method", marks=pytest.mark.long
        ),
        pytest.param(GOOD.replace('"mine"', '"yours"'), "but its NAME is 'yours'", marks=pytest.mark.long),
        pytest.param(
            GOOD + "    Options = dict",
            "but its Options are not a subclass of sentloom.methods.Options",
            marks=pytest.mark.long,
        ),
        (GOOD + "    PRESETS = {'default': {'epoch': 1}}", "preset default: the key 'epoch' is unknown"),
    ],
)
def test_a_broken_method_is_refused_when_asked_for_and_harms_no_other(tmp_path, code, problem):
    install(tmp_path, "mypackage", code, "mine = mypackage:Mine")
    found = run(tmp_path, "print(len(METHODS['simcse'].PRESETS), 'mine' in METHODS)\nMETHODS['mine']")
    assert found.startswith("3 True\nmethod mine")
    assert problem in found
    assert "preset" in problem or "package mypackage offers it as mypackage:Mine" in found


@pytest.mark.long
def test_two_packages_with_one_name(tmp_path):
    install(tmp_path, "one", GOOD, "mine = one:Mine")
    install(tmp_path, "two", GOOD, "mine = two:Mine")
    found = run(tmp_path, "METHODS['mine']")
    assert found == "method mine: package one and package two both offer it.\nUninstall one of them.\n"
