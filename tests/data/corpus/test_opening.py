"""Data is opened by name."""

import pytest

from sentloom.data.corpus.opening import open_data
from sentloom.data.shapes import Shape
from sentloom.errors import InputError, SentloomError


def test_a_path_is_read(tmp_path):
    (tmp_path / "embedded.txt").write_text("One line.\n")
    assert open_data(tmp_path / "embedded.txt").column("text").to_pylist() == ["One line."]


def test_packages_of_the_embedded_corpus_by_name():
    texts = open_data("embedded:click")
    pairs = open_data("embedded/pairs:click,rich")
    apart = open_data("embedded/pairs/held-out:click")
    assert (texts.shape, pairs.shape) == (Shape.TEXTS, Shape.PAIRS)
    assert len(texts) > 100
    assert {name.partition(".")[0] for name in pairs.column("anchor").to_pylist()} == {"click", "rich"}
    assert {name.partition(".")[0] for name in apart.column("anchor").to_pylist()} == {"click"}


def test_the_public_name_reads_them_too():
    import sentloom

    assert sentloom.read("embedded/pairs:click").sha256 == open_data("embedded/pairs:click").sha256


@pytest.mark.parametrize("name", ["embedded/triples", "embedded/held-out", "embedded:", "embedded/pairs/train"])
def test_errors_for_unknown_names_list_the_valid_forms(name):
    with pytest.raises(InputError, match="embedded/pairs"):
        open_data(name)


def test_the_error_for_a_missing_package_says_what_to_install():
    with pytest.raises(SentloomError, match="pip install no_such_package"):
        open_data("embedded:no_such_package")
    with pytest.raises(SentloomError, match="pip install no_such_package"):
        open_data("embedded:click,no_such_package")


def test_an_empty_name_is_refused():
    with pytest.raises(InputError, match="the name is empty"):
        open_data(" ")
