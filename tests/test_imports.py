"""Imports between the packages of sentloom point one way."""

import ast
from pathlib import Path

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
        "engine",
        "fitting",
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
EXCEPTIONS = (("encoder/encoder.py", "export"), ("api/fitting.py", "lab"))
MAY_USE_THE_LAB = ("lab", "api", "cli")  # the commands, and the public functions
SOURCE = Path(sentloom.__file__).parent


def imported_packages(path: Path) -> set[str]:
    """The packages of sentloom that a file imports anywhere, also inside functions."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def names_the_lab(path: Path) -> bool:
    """Whether a file reaches the lab without an import statement: `sentloom.lab`, or its name in a text."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return any(one.attr == "lab" and one.value.id == "sentloom" for one in attributes) or any(
        text == "sentloom.lab" or text.startswith("sentloom.lab.") for text in texts
    )


def test_the_product_never_imports_the_lab():
    users = {
        package_of(path)
        for path in SOURCE.rglob("*.py")
        if ("lab" in imported_packages(path) or names_the_lab(path)) and package_of(path) != "__init__"
    }
    assert users <= set(MAY_USE_THE_LAB)


def test_ways_around_an_import_statement_are_seen(tmp_path):
    path = tmp_path / "some.py"
    for code in ("import sentloom\nsentloom.lab.reproduce", 'import_module("sentloom.lab.recipe")'):
        path.write_text(code, "utf-8")
        assert names_the_lab(path)
    path.write_text('"""What `sentloom.lab` does."""\nsentloom.fit', "utf-8")
    assert not names_the_lab(path)
