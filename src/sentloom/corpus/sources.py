"""Find the Python files of installed packages without importing anything, and parse their docstrings."""

import ast
import gc
import os
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sentloom.corpus.names import ParsedModule, read_module, statements
from sentloom.corpus.text import Prose, read_docstring
from sentloom.errors import InputError

STANDARD_LIBRARY = "stdlib"
IMPORT_NAMES = {"scikit-learn": "sklearn"}  # distributions whose import name is not the same with underscores

SKIPPED_FOLDER = re.compile(
    r"_?(tests?|testing|vendor\w*|externals?|third_party|bundled)|test_\w+|\w+_test|array_api_\w+|__pycache__"
)
SKIPPED_FILE = re.compile(r"(test(ing)?_\w+|\w+_test|conftest)\.py")
GENERATED = re.compile(
    rb"^#.*(\bfile\b.*auto(matically )?-?generated|auto-?generated file|code generated|do not edit)",
    re.IGNORECASE | re.MULTILINE,
)
GENERATED_HEAD = 1500  # bytes in which a generated file is marked as such
POOL_FROM = 400  # files above which worker processes pay off

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Docstring(NamedTuple):
    """The prose of one docstring, and the dotted path of its object inside the module ("" is the module)."""

    path: str
    line: int
    prose: Prose


class DocstringSource(NamedTuple):
    """One parsed file, with its path relative to the folder that holds its package."""

    file: str
    module: ParsedModule
    docstrings: tuple[Docstring, ...]


def import_names(packages: Iterable[str]) -> list[str]:
    """Convert to distinct import names, in order."""
    names = list(dict.fromkeys(IMPORT_NAMES.get(name, name.replace("-", "_")) for name in packages))
    for name in names:
        if not name.isidentifier():
            problem = f"{name!r} is not the name of a top-level package"
            raise InputError("packages", problem, "", "write numpy, not numpy.linalg")
    return names


def locate(package: str) -> list[tuple[Path, Path]] | None:
    """Return a package's files, each with its base folder, without importing it; None if it is not installed."""
    if package == STANDARD_LIBRARY:
        folder = Path(sysconfig.get_path("stdlib"))
        return [(folder, file) for file in _python_files(folder)]
    spec = find_spec(package)
    if spec is None:
        return None
    if spec.submodule_search_locations is None:
        file = Path(spec.origin or "")
        return [(file.parent, file)] if file.suffix == ".py" else []
    return [(Path(folder).parent, file) for folder in spec.submodule_search_locations for file in _python_files(folder)]


def _python_files(folder: str | Path) -> list[Path]:
    """Return the Python files below a folder, sorted, without tests, vendored copies and site-packages."""
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name.isidentifier() and not SKIPPED_FOLDER.fullmatch(name)]
        found += [Path(parent, name) for name in files if name.endswith(".py") and not SKIPPED_FILE.fullmatch(name)]
    return sorted(found)


def read_sources(
    files: Sequence[tuple[Path, Path]], workers: int, pool_from: int = POOL_FROM
) -> Iterator[DocstringSource | None]:
    """Parse every file, in order; None for files that a program wrote or that cannot be decoded or parsed."""
    if workers == 1 or len(files) < pool_from:
        yield from map(_read_source, files)
    else:
        # Syntax trees are freed without the garbage collector.
        with ProcessPoolExecutor(workers, initializer=gc.disable) as pool:
            yield from pool.map(_read_source, files, chunksize=16)


def _read_source(place: tuple[Path, Path]) -> DocstringSource | None:
    folder, file = place
    try:
        source = file.read_bytes()
        if GENERATED.search(source[:GENERATED_HEAD]):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in third-party code
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    relative = file.relative_to(folder)
    is_package = relative.stem == "__init__"
    name = ".".join((relative.parent if is_package else relative.with_suffix("")).parts)
    return DocstringSource(relative.as_posix(), read_module(name, is_package, tree), tuple(_docstrings(tree, "")))


def _docstrings(node: ast.Module | Definition, path: str) -> Iterator[Docstring]:
    """Yield the docstrings of a module, its classes, functions and methods, but not of nested functions."""
    text = ast.get_docstring(node, clean=False)
    if text:
        yield Docstring(path, node.body[0].lineno, read_docstring(text))
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in statements(node.body):
            if isinstance(child, Definition):
                yield from _docstrings(child, f"{path}.{child.name}".lstrip("."))
