"""Installed packages: find their Python files and parse their docstrings without importing anything.

Objects are named as users import them, by the shortest public path.
"""

import ast
import gc
import os
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

from sentloom.data.corpus.prose import Prose, read_docstring
from sentloom.errors import InputError

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Origin = tuple[str, str]  # the defining module and the name in it

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


class Docstring(NamedTuple):
    """The prose of one docstring, and the dotted path of its object inside the module ("" is the module)."""

    path: str
    line: int
    prose: Prose


@dataclass(frozen=True)
class ParsedModule:
    """What one module binds at its top level."""

    name: str
    is_package: bool  # an `__init__.py`, which exports what it imports
    defined: frozenset[str]
    imported: Mapping[str, Origin]
    stars: tuple[str, ...]  # modules of `from x import *`
    exports: frozenset[str] | None  # a literal `__all__`


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
    paths: list[Path] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name.isidentifier() and not SKIPPED_FOLDER.fullmatch(name)]
        paths += [Path(parent, name) for name in files if name.endswith(".py") and not SKIPPED_FILE.fullmatch(name)]
    return sorted(paths)


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


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class body, including those under `if` and `try`."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from statements(node.body)
            yield from statements(node.orelse)
        if isinstance(node, ast.Try):
            yield from statements(inner for handler in node.handlers for inner in handler.body)


def read_module(name: str, is_package: bool, tree: ast.Module) -> ParsedModule:
    """Collect the bindings of a parsed module."""
    defined: set[str] = set()
    imported: dict[str, Origin] = {}
    stars: list[str] = []
    exports: frozenset[str] | None = None
    for node in statements(tree.body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            source = _source(node, name, is_package)
            stars.extend(source for alias in node.names if alias.name == "*")
            imported.update({alias.asname or alias.name: (source, alias.name) for alias in node.names})
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            exports = _strings(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == "__all__":
            exports = None  # computed at run time
    return ParsedModule(name, is_package, frozenset(defined), imported, tuple(stars), exports)


def _source(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """Return the absolute name of the module that a `from` statement imports from."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package]
    return ".".join([*base, node.module] if node.module else base)


def _strings(value: ast.expr) -> frozenset[str] | None:
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    strings = [item.value for item in value.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return frozenset(strings) if len(strings) == len(value.elts) else None


class PublicNames:
    """The public names of the objects in a package's modules."""

    def __init__(self, modules: Iterable[ParsedModule]) -> None:
        self._modules = {module.name: module for module in modules}
        self._bound: dict[str, frozenset[str]] = {}
        self._shortest: dict[Origin, str] = {}
        shown = sorted(filter(is_public, self._modules), key=lambda name: (name.count("."), name))
        for module in shown:
            for name in sorted(self._shown(self._modules[module])):
                origin = self._origin(module, name, frozenset())
                if origin is not None:
                    self._shortest.setdefault(origin, f"{module}.{name}")
        self._taken = set(self._shortest.values())

    def find(self, module: str, path: str) -> str | None:
        """Return the public name of the object at dotted `path` in `module` ("" is the module itself), or None.

        An object that no module exports is named after its module or, in a private module, after the public package
        around it, unless the package has another object of that name.
        """
        head, _, rest = path.partition(".")
        name = self._shortest.get((module, head))
        if name is None:
            name = f"{_home(module)}.{head}" if path else module
            if name in self._taken:
                return None
        full = f"{name}.{rest}" if rest else name
        return full if is_public(full) else None

    def _shown(self, module: ParsedModule) -> Iterable[str]:
        """Return the names a module exports: `__all__`, else definitions and star imports, and a package's imports."""
        if module.exports is not None:
            return module.exports
        starred = chain.from_iterable(map(self._names_starred, module.stars))
        return filter(is_public, self._names_bound(module.name) if module.is_package else {*module.defined, *starred})

    def _names_bound(self, name: str) -> frozenset[str]:
        """Return every name bound in a module, following star imports, which may be circular."""
        module = self._modules.get(name)
        if module is None:
            return frozenset()
        if name not in self._bound:
            self._bound[name] = own = module.defined | module.imported.keys()
            self._bound[name] = own.union(*(self._names_starred(star) for star in module.stars))
        return self._bound[name]

    def _names_starred(self, name: str) -> frozenset[str]:
        """Return the names that `from name import *` binds."""
        module = self._modules.get(name)
        return module.exports if module is not None and module.exports is not None else self._names_bound(name)

    def _origin(self, module: str, name: str, seen: frozenset[Origin]) -> Origin | None:
        """Find where a name bound in a module was defined."""
        parsed = self._modules.get(module)
        if parsed is None or (module, name) in seen:
            return None
        if name in parsed.defined:
            return module, name
        stars = [(star, name) for star in parsed.stars if name in self._names_starred(star)]
        sources = [parsed.imported[name]] if name in parsed.imported else stars
        return next((origin for source in sources if (origin := self._origin(*source, seen | {(module, name)}))), None)


def is_public(name: str) -> bool:
    """Whether no part of a dotted name starts with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def _home(module: str) -> str:
    """Return a module's name up to its first private part, or unchanged if that part is right below the root."""
    parts = module.split(".")
    shown = list(takewhile(is_public, parts))
    return ".".join(shown) if len(shown) > 1 else module
