"""The recipes that come with the package, by name."""

from importlib.resources import files
from pathlib import Path

from sentloom.errors import InputError
from sentloom.pipeline.yaml_source import one_of


def shipped() -> dict[str, Path]:
    """Every recipe in the package's folder `recipes`, by its file's name without the ending."""
    folder = Path(str(files("sentloom"))) / "recipes"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_recipe(name: str) -> Path:
    """A recipe's file: a path, or the name of one that is shipped."""
    if Path(name).is_file():
        return Path(name)
    known = shipped()
    if name not in known:
        found = "there is no such file, and no built-in recipe of that name"
        raise InputError(
            name, found, f"a file, or {one_of(name, known)}", "list the built-in recipes with `sentloom recipes`"
        )
    return known[name]
