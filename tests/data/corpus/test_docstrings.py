"""The embedded corpus: what it contains, how it is split, and that nothing leaks."""

import re

import pytest

from sentloom.data.corpus.docstrings import harvest
from sentloom.data.shapes import Shape
from sentloom.errors import InputError, MissingPart

PEARS = '''"""All about growing good pears."""
from ._impl import peel

def plant():
    """Plant a tree in the garden."""

class Pear:
    """A pear that can be eaten.

    It is best eaten when it is ripe.
    Shared sentences are dropped from training.
    """

    @property
    def weight(self):
        """The weight of this fruit."""

    @weight.setter
    def weight(self, value):
        """Set the weight of it."""

    def _secret(self):
        """Secret methods give sentences only."""

def again():
    """plant a tree in the garden"""
'''
PEELING = '''def peel():
    """Peel the fruit with a knife."""
'''
PLUMS = '''"""All about drying good plums."""

def peel():
    """Peel the fruit, with a knife!"""

def dry():
    """Dry some plums.

    SHARED sentences are dropped, from training.
    A pear that can be eaten.
    """
'''


@pytest.fixture
def orchard(tmp_path, monkeypatch):
    """Make two packages that share some sentences up to case and punctuation."""
    for name, source in {"pears_pkg/__init__": PEARS, "pears_pkg/_impl": PEELING, "plums_pkg/__init__": PLUMS}.items():
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return ("pears_pkg", "plums_pkg")


def rows(data):
    table = data.take(range(len(data)))
    return list(zip(*table.values(), strict=True))


def test_without_a_held_out_package_everything_is_training_data(orchard):
    corpus = harvest(orchard)
    assert rows(corpus.pairs()) == [
        ("pears_pkg", "All about growing good pears."),
        ("pears_pkg.plant", "Plant a tree in the garden."),
        ("pears_pkg.Pear", "A pear that can be eaten."),
        ("pears_pkg.Pear.weight", "The weight of this fruit."),
        ("pears_pkg.peel", "Peel the fruit with a knife."),
        ("plums_pkg", "All about drying good plums."),
        ("plums_pkg.peel", "Peel the fruit, with a knife!"),
        ("plums_pkg.dry", "Dry some plums."),
    ]
    assert [text for (text,) in rows(corpus.texts())] == [
        "All about growing good pears.",
        "Plant a tree in the garden.",
        "A pear that can be eaten.",
        "It is best eaten when it is ripe.",
        "Shared sentences are dropped from training.",
        "The weight of this fruit.",
        "Set the weight of it.",
        "Secret methods give sentences only.",
        "Peel the fruit with a knife.",
        "All about drying good plums.",
    ]
    assert len(corpus.texts("held-out")) == len(corpus.pairs("held-out")) == 0


def test_text_of_a_held_out_package_is_removed_from_training(orchard):
    corpus = harvest(orchard, held_out=["plums_pkg"])
    assert [name for name, _ in rows(corpus.pairs("train"))] == [
        "pears_pkg", "pears_pkg.plant", "pears_pkg.Pear.weight",
    ]  # fmt: skip
    train = {text for (text,) in rows(corpus.texts("train"))}
    assert not train & {"A pear that can be eaten.", "Peel the fruit with a knife."}
    assert "Shared sentences are dropped from training." not in train
    assert [name for name, _ in rows(corpus.pairs("held-out"))] == ["plums_pkg", "plums_pkg.peel", "plums_pkg.dry"]
    assert ("SHARED sentences are dropped, from training.",) in rows(corpus.texts("held-out"))
    pears, plums = corpus.packages
    assert (pears.package, pears.split, pears.files, pears.sentences, pears.pairs) == ("pears_pkg", "train", 2, 6, 3)
    assert (plums.split, plums.sentences, plums.pairs) == ("held-out", 4, 3)


def test_rows_have_their_file_and_line(orchard):
    corpus = harvest(orchard)
    assert corpus.texts().shape is Shape.TEXTS
    assert corpus.pairs().shape is Shape.PAIRS
    assert corpus.pairs().place(1) == "pears_pkg/__init__.py, line 5"
    assert corpus.pairs().place(4) == "pears_pkg/_impl.py, line 2"


def test_missing_packages_are_reported_and_the_rest_is_read(orchard):
    corpus = harvest([*orchard, "surely-not-installed"])
    assert corpus.missing == ("surely_not_installed",)
    assert len(corpus.packages) == 2


def test_no_package_at_all_is_an_error():
    with pytest.raises(MissingPart, match="surely_not_installed"):
        harvest(["surely_not_installed"])


def test_a_held_out_package_must_be_among_the_packages(orchard):
    with pytest.raises(InputError, match="held_out"):
        harvest(orchard, held_out=["scipy"])


def test_the_same_environment_gives_the_same_rows(orchard):
    once = harvest([*orchard, "json"])
    again = harvest([*orchard, "json"], workers=2)
    assert again.texts().sha256 == once.texts().sha256
    assert again.texts().table.equals(once.texts().table)
    assert again.pairs().table.equals(once.pairs().table)
    assert again.packages == once.packages
    assert harvest(orchard).texts().sha256 != once.texts().sha256


def _bare(text):
    return "".join(character for character in text.lower() if character.isalnum())


@pytest.fixture(scope="module")
def science():
    return harvest(["numpy", "scipy"])


@pytest.mark.long
def test_scipy_is_held_out_by_default_and_large_enough(science):
    assert {count.package: count.split for count in science.packages} == {"numpy": "train", "scipy": "held-out"}
    assert len(science.pairs("held-out")) > 1800
    assert len(science.texts("held-out")) > 8000
    assert (
        "scipy.spatial.distance.cdist",
        "Compute distance between each pair of the two collections of inputs.",
    ) in rows(science.pairs("held-out"))


@pytest.mark.long
def test_no_text_of_scipy_is_in_the_training_side(science):
    held = {_bare(cell) for data in (science.texts, science.pairs) for row in rows(data("held-out")) for cell in row}
    train = {_bare(cell) for data in (science.texts, science.pairs) for row in rows(data("train")) for cell in row}
    assert not held & train


@pytest.mark.long
@pytest.mark.parametrize("split", ["train", "held-out"])
def test_names_and_summaries_are_distinct_and_names_are_public(science, split):
    names, summaries = zip(*rows(science.pairs(split)), strict=True)
    assert len(set(names)) == len(names)
    assert len({_bare(summary) for summary in summaries}) == len(summaries)
    assert not [name for name in names if re.search(r"(^|\.)_", name)]
    assert min(len(summary.split()) for summary in summaries) >= 3
    texts = [text for (text,) in rows(science.texts(split))]
    assert len({_bare(text) for text in texts}) == len(texts)
