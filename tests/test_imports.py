"""Imports between the packages of sentloom point one way."""

import ast
from functools import cache
from pathlib import Path

import pytest

import sentloom

# Each package may import from itself and from those before it.
ORDER = [
    *(
        "errors",
        "arguments",
        "plugins",
        "locks",
        "files",
        "markdown",
        "terminal",
        "progress",
        "interrupts",
        "ray_actors",
        "confined",
    ),
    *("data", "encoder", "search", "losses", "methods", "training", "writing"),
    *(
        "evaluation",
        "classify",
        "engine",
        "fitting",
        "systems",
        "export",
        "report",
        "serving",
        "ticking",
        "api",
        "lab",
        "demo",
        "cli",
        "__main__",
    ),
]
# Encoder is the face of the library, and some of its methods call what is built on it; `fit` takes recipes, which the
# lab reads.
EXCEPTIONS = (("encoder/encoder.py", "export"), ("encoder/encoder.py", "search"), ("api/fitting.py", "lab"))
MAY_USE_THE_LAB = ("__init__.py", "api/fitting.py", "cli/", "lab/")  # public names, `fit` of a recipe, commands
# These import modules that a table beside the import names; nothing else is imported without an import statement.
TABLES_OF_MODULES = ("__init__.py", "data/__init__.py", "encoder/__init__.py", "encoder/formats/registry.py")
IMPORTERS = {"__import__", "import_module", "run_module", "run_path"}
SOURCE = Path(sentloom.__file__).parent


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported_packages(path: Path) -> set[str]:
    """The packages of sentloom that a file imports anywhere, also inside functions."""
    modules = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
    return {module.split(".")[1] for module in modules if module.startswith("sentloom.")} - {"__version__"}


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_package_is_in_the_order():
    packages = {package_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert packages == set(ORDER)


def test_no_import_points_back():
    backwards = [
        f"{path.relative_to(SOURCE)} imports {package}"
        for path in SOURCE.rglob("*.py")
        if package_of(path) != "__init__"
        for package in imported_packages(path)
        if ORDER.index(package) > ORDER.index(package_of(path))
        and (path.relative_to(SOURCE).as_posix(), package) not in EXCEPTIONS
    ]
    assert backwards == []


def names_in(path: Path) -> set[str]:
    """The names and texts in a file's code."""
    nodes = nodes_of(path)
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    names += [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    names += [node.name for node in nodes if isinstance(node, ast.alias)]
    return {*names, *(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))}


def uses_the_lab(path: Path) -> bool:
    """Whether a file imports the lab, or `sentloom`, whose attribute it is, or names one of its modules in a text."""
    imported = {alias.name for node in nodes_of(path) if isinstance(node, ast.Import) for alias in node.names}
    named = [name for name in names_in(path) if name == "sentloom.lab" or name.startswith("sentloom.lab.")]
    return bool("lab" in imported_packages(path) or "sentloom" in imported or named)


def test_the_product_never_imports_the_lab():
    files = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if uses_the_lab(path)]
    assert [file for file in files if not file.startswith(MAY_USE_THE_LAB)] == []


def test_modules_are_imported_by_statements_or_from_a_table():
    files = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if names_in(path) & IMPORTERS}
    assert files == {*TABLES_OF_MODULES, "lab/__init__.py"}


@pytest.mark.parametrize(
    "code",
    [
        "from sentloom.lab.recipe import Recipe",
        "def read():\n    from sentloom import lab",
        "import sentloom\nsentloom.lab.train",
        "import sentloom as loom\nloom.lab.train",
        "import sys\nsys.modules['sentloom.lab']",
        "import_module('sentloom.lab.recipe')",
    ],
)
def test_uses_of_the_lab_are_seen(tmp_path, code):
    path = tmp_path / "some.py"
    path.write_text(code, "utf-8")
    assert uses_the_lab(path)


@pytest.mark.parametrize(
    "code",
    ["import importlib\nimportlib.import_module('.lab', 'sentloom')", "from importlib import import_module as get"],
)
def test_imports_without_a_statement_are_seen(tmp_path, code):
    path = tmp_path / "some.py"
    path.write_text(code, "utf-8")
    assert names_in(path) & IMPORTERS


def test_words_about_the_lab_are_no_use_of_it(tmp_path):
    path = tmp_path / "some.py"
    path.write_text('"""What `sentloom.lab` does."""\nfrom sentloom import __version__, progress', "utf-8")
    assert not uses_the_lab(path)
