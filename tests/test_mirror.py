"""tests/ mirrors src/: every module has a test file of the same name, except those listed here with a reason."""

from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "sentloom"
COMMAND = "tested through the commands in tests/cli"
WITHOUT = {
    "cli/common.py": COMMAND,
    "cli/fitting.py": COMMAND,
}


def modules() -> list[Path]:
    paths = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return [path for path in paths if not path.name.startswith("__")]


def test_every_module_has_a_test_file_of_its_name() -> None:
    without = {str(path) for path in modules() if not (TESTS / path.parent / f"test_{path.name}").exists()}
    assert without - WITHOUT.keys() == set(), "write a test file of the same name"
    assert WITHOUT.keys() - without == set(), "remove these from WITHOUT: they have tests, or are gone"
