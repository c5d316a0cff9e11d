"""Find the public name of an object: the shortest dotted name it can be imported by, found without importing.

`scipy/stats/_stats_py.py` defines `ttest_ind`, but users know `scipy.stats.ttest_ind`: the import statements and
`__all__` lists of a package show which of its modules export what another one defines.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, takewhile

Origin = tuple[str, str]  # the defining module and the name in it


@dataclass(frozen=True)
class ParsedModule:
    """What one module binds at its top level."""

    name: str
    is_package: bool  # an `__init__.py`, which exports what it imports
    defined: frozenset[str]
    imported: Mapping[str, Origin]
    stars: tuple[str, ...]  # modules of `from x import *`
    exports: frozenset[str] | None  # a literal `__all__`


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


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class body, including those under `if` and `try`."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from statements(node.body)
            yield from statements(node.orelse)
        if isinstance(node, ast.Try):
            yield from statements(inner for handler in node.handlers for inner in handler.body)


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
    found = [item.value for item in value.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return frozenset(found) if len(found) == len(value.elts) else None


def is_public(name: str) -> bool:
    """Whether no part of a dotted name starts with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def _home(module: str) -> str:
    """Return a module's name up to its first private part, or unchanged if that part is right below the root."""
    parts = module.split(".")
    shown = list(takewhile(is_public, parts))
    return ".".join(shown) if len(shown) > 1 else module


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
        found = self._modules.get(module)
        if found is None or (module, name) in seen:
            return None
        if name in found.defined:
            return module, name
        stars = [(star, name) for star in found.stars if name in self._names_starred(star)]
        sources = [found.imported[name]] if name in found.imported else stars
        return next((origin for source in sources if (origin := self._origin(*source, seen | {(module, name)}))), None)
