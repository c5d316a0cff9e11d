"""Public names found in source text, checked against Python's own imports."""

import ast
import importlib

import pytest

from sentloom.data.corpus.packages import DocstringSource, PublicNames, is_public, locate, read_module, read_sources


def names_of(**files):
    """Return the public names of a package given as module name (dots as __, a package ends in __) -> source."""
    modules = []
    for key, source in files.items():
        name = key.removesuffix("__").replace("__", ".")
        modules.append(read_module(name, key.endswith("__"), ast.parse(source)))
    return PublicNames(modules)


def test_a_private_module_exported_by_its_package():
    names = names_of(pkg__="from ._impl import weigh", pkg___impl="def weigh(): ...\ndef hidden(): ...")
    assert names.find("pkg._impl", "weigh") == "pkg.weigh"
    assert names.find("pkg._impl", "hidden") is None


def test_methods_follow_their_class():
    names = names_of(pkg__="from .core import Basket", pkg__core="class Basket:\n def add(self): ...")
    assert names.find("pkg.core", "Basket.add") == "pkg.Basket.add"
    assert names.find("pkg.core", "Basket._secret") is None
    assert names.find("pkg.core", "Basket.__len__") is None


def test_the_shortest_of_several_names_wins():
    names = names_of(
        pkg__="from .deep.core import Basket",
        pkg__deep__="from .core import Basket",
        pkg__deep__core="class Basket: ...",
    )
    assert names.find("pkg.deep.core", "Basket") == "pkg.Basket"


def test_aliases_stars_and_chains_are_followed():
    names = names_of(
        pkg__="from ._core import *\nfrom ._core.other import plain as fancy",
        pkg___core__="from .numbers import *\n__all__ = ['one', 'two']",
        pkg___core__numbers="def one(): ...\ndef two(): ...\ndef three(): ...",
        pkg___core__other="def plain(): ...",
    )
    assert names.find("pkg._core.numbers", "one") == "pkg.one"
    assert names.find("pkg._core.numbers", "three") is None  # not in `__all__`, so not star-imported
    assert names.find("pkg._core.other", "plain") == "pkg.fancy"


def test_a_public_module_exports_its_imports_only_through_all():
    names = names_of(
        pkg__="",
        pkg__tools="from ._impl import weigh",
        pkg__listed="from ._impl import count\n__all__ = ['count']",
        pkg__front="from ._starred import *",
        pkg___impl="def weigh(): ...\ndef count(): ...",
        pkg___starred="def sort(): ...",
    )
    assert names.find("pkg._impl", "weigh") is None
    assert names.find("pkg._impl", "count") == "pkg.listed.count"
    assert names.find("pkg._starred", "sort") == "pkg.front.sort"


def test_objects_that_are_not_exported_are_named_after_the_public_package():
    names = names_of(pkg__="", pkg__stats__="", pkg__stats___impl__core="class Fit:\n def run(self): ...")
    assert names.find("pkg.stats._impl.core", "Fit.run") == "pkg.stats.Fit.run"
    assert names.find("pkg.stats._impl.core", "") is None


def test_no_name_is_used_twice():
    names = names_of(
        pkg__="",
        pkg__stats__="from ._plain import test",
        pkg__stats___masked="def test(): ...",
        pkg__stats___plain="def test(): ...",
    )
    assert names.find("pkg.stats._plain", "test") == "pkg.stats.test"
    assert names.find("pkg.stats._masked", "test") is None


def test_circular_imports_terminate():
    names = names_of(
        pkg__="from .a import *",
        pkg__a="from .b import *\nfrom .b import x",
        pkg__b="from .a import *\nfrom .a import x",
    )
    assert names.find("pkg.a", "x") == "pkg.a.x"


def test_imports_under_if_and_try_count():
    names = names_of(
        front="try:\n from _fast import *\nexcept ImportError:\n from _slow import *", _slow="def sort(): ..."
    )
    assert names.find("_slow", "sort") == "front.sort"


def test_an_all_computed_at_run_time_is_ignored():
    names = names_of(pkg__="from ._a import x\n__all__ = ['y']\n__all__ += other", pkg___a="def x(): ...")
    assert names.find("pkg._a", "x") == "pkg.x"


def test_modules_have_their_own_name():
    names = names_of(pkg__="", pkg__core="", pkg___impl="")
    assert (names.find("pkg", ""), names.find("pkg.core", ""), names.find("pkg._impl", "")) == ("pkg", "pkg.core", None)


@pytest.mark.parametrize("package", ["json", "logging", "email", "html", "unittest", "http"])
def test_names_of_the_standard_library_can_be_imported(package):
    sources = [file for file in read_sources(locate(package), workers=1) if isinstance(file, DocstringSource)]
    public = PublicNames(source.module for source in sources)
    names = {public.find(source.module.name, docstring.path) for source in sources for docstring in source.docstrings}
    assert names - {None}
    assert all(is_public(name) and _resolves(name) for name in names - {None})


def _resolves(name):
    """Whether Python can import an object by its dotted name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            thing = getattr(thing, part, None)
        return thing is not None
    return False
