"""The arrows between the rooms of the house point one way."""

import ast
from pathlib import Path

import sentloom

# Each room may import from itself and from those before it.
ORDER = [
    *("errors", "locks", "files", "markdown", "terminal", "progress", "interrupts"),
    *("data", "corpus", "hygiene", "encoder", "search", "views", "losses", "methods", "training", "writing"),
    *("baselines", "evaluation", "pipeline", "fitting", "report", "api", "demo", "cli", "__main__"),
]
HOUSE = Path(sentloom.__file__).parent


def imported_rooms(path: Path) -> set[str]:
    """The rooms of sentloom that a file imports anywhere, also inside functions."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
    return {module.split(".")[1] for module in modules if module.startswith("sentloom.")} - {"__version__"}


def room_of(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def test_every_room_has_its_place():
    rooms = {room_of(path) for path in HOUSE.rglob("*.py")} - {"__init__"}
    assert rooms == set(ORDER)


def test_no_arrow_points_back():
    backwards = [
        f"{path.relative_to(HOUSE)} imports {room}"
        for path in HOUSE.rglob("*.py")
        if room_of(path) != "__init__"
        for room in imported_rooms(path)
        if ORDER.index(room) > ORDER.index(room_of(path))
    ]
    assert backwards == []
