"""Methods by name: built in, or from installed packages, here real ones in a folder on the path."""

import subprocess
import sys
from pathlib import Path

import pytest

from sentloom.errors import InputError
from sentloom.methods import METHODS, Method
from sentloom.methods.registry import BUILT_IN, load, offers

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


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the path in which packages are found; before and after, the methods are looked for anew."""
    monkeypatch.syspath_prepend(tmp_path)
    for cached in (offers, load):
        cached.cache_clear()
    yield tmp_path
    for cached in (offers, load):
        cached.cache_clear()
    for name in ("mypackage", "one", "two"):
        sys.modules.pop(name, None)


@pytest.mark.long
def test_names_are_known_without_importing_a_method():
    """In a process of its own: here, other tests have imported them."""
    code = "import sys; from sentloom.methods import METHODS; print('mlm' in METHODS, 'sentloom.methods.mlm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True False\n", done.stderr


def test_a_package_offers_a_method_and_is_imported_when_asked(site):
    install(site, "mypackage", GOOD, "mine = mypackage:Mine")
    assert "mine" in METHODS
    assert list(METHODS)[-1] == "mine"
    assert "mypackage" not in sys.modules
    assert METHODS["mine"].__name__ == "Mine"
    assert METHODS["mine"] is METHODS["mine"]


def test_a_built_in_name_is_not_replaced(site):
    install(site, "mypackage", GOOD, "simcse = mypackage:Mine")
    assert METHODS["simcse"].__module__ == "sentloom.methods.simcse"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import no_such_module", "cannot be imported (ModuleNotFoundError(\"No module named 'no_such_module'\"))"),
        ("raise RuntimeError('no GPU')", "cannot be imported (RuntimeError('no GPU'))"),
        ("Other = 1", "cannot be imported (AttributeError("),
        ("class Mine: pass", "but that is not a subclass of sentloom.methods.Method"),
        ("Mine = 'a text'", "but that is not a subclass of sentloom.methods.Method"),
        (GOOD.replace('"mine"', '"yours"'), "but its NAME is 'yours'"),
        (GOOD + "    Options = dict", "but its Options are not a subclass of sentloom.methods.Options"),
        (GOOD + "    PRESETS = {'default': {'epoch': 1}}", "preset default: the key 'epoch' is unknown"),
    ],
)
def test_a_broken_method_is_refused_when_asked_for_and_harms_no_other(site, code, problem):
    install(site, "mypackage", code, "mine = mypackage:Mine")
    assert len(METHODS["simcse"].PRESETS) == 4
    assert "mine" in METHODS
    with pytest.raises(InputError) as refused:
        METHODS["mine"]
    assert str(refused.value).startswith("method mine")
    assert problem in str(refused.value)
    assert "preset" in problem or "package mypackage offers it as mypackage:Mine" in str(refused.value)


def test_two_packages_with_one_name(site):
    install(site, "one", GOOD, "mine = one:Mine")
    install(site, "two", GOOD, "mine = two:Mine")
    with pytest.raises(InputError) as refused:
        METHODS["mine"]
    assert str(refused.value) == "method mine: package one and package two both offer it.\nUninstall one of them."
