"""The examples in the docstrings of the public names: each runs, and prints what it says."""

import doctest
import inspect
from functools import partial

import pytest

import sentloom
from sentloom.encoder.locate import embedded_folder
from sentloom.errors import MissingPart
from tests.fitting.small_base import build_base
from tests.writing.small_synthesizers import build_small_t5


@pytest.fixture(scope="module", autouse=True)
def embedded_encoder():
    try:
        embedded_folder()
    except MissingPart:
        pytest.skip("the embedded encoder is not installed: pip install 'sentloom[embedded]'")


def examples():
    owners = {"sentloom": sentloom, **{name: getattr(sentloom, name) for name in sentloom.__all__ if name != "lab"}}
    owners |= {name: getattr(sentloom.lab, name) for name in sentloom.lab.__all__}
    owners |= {"Encoder.similarity": sentloom.Encoder.similarity, "Encoder.search": sentloom.Encoder.search}
    finder = doctest.DocTestFinder(recurse=False)
    return [test for name, owner in owners.items() for test in finder.find(owner, name)]


SLOW = {"compare", "shrink", "Predictor"}  # like `train`, on the embedded encoder


@pytest.mark.parametrize(
    "example",
    [pytest.param(one, marks=pytest.mark.long if one.name in SLOW else (), id=one.name) for one in examples()],
)
def test_the_example_prints_what_it_says(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert example.examples, f"{example.name} has no example"
    if example.name == "synthesize":
        build_small_t5(tmp_path / "t5")
        example.globs["small_t5"] = str(tmp_path / "t5")
    if example.name in ("fit", "Fit"):  # with the embedded encoder it takes a minute
        example.globs["fit"] = partial(sentloom.fit, base=build_base(tmp_path / "base"))
    failed = []
    doctest.DocTestRunner().run(example, out=failed.append)
    assert not failed, "".join(failed)


def test_every_public_name_is_visible_documented_and_real():
    for module in (sentloom, sentloom.lab):
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            assert inspect.getdoc(getattr(module, name)), name
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            module.nonsense  # noqa: B018
