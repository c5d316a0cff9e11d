"""Names of baselines are parsed into their parts and written back."""

import pytest

from sentloom.lab.baselines import BaselineName, parse_baseline

NAMES = {
    "tf-idf": BaselineName("tf-idf"),
    "words:a:b.txt": BaselineName("words", "a:b.txt"),
    "wk:owner/model@1f": BaselineName("wk", "owner/model@1f"),
    "whitening-8:model": BaselineName("whitening", "model", dimension=8),
    "flow:owner/model:a.txt,b.tsv": BaselineName("flow", "owner/model", ("a.txt", "b.tsv")),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_has_its_parts_and_is_written_as_it_was_read(name):
    assert parse_baseline(name) == NAMES[name]
    assert str(NAMES[name]) == name


def test_parts_are_located():
    found = parse_baseline("flow:model:texts.txt").located(lambda name: f"/there/{name}")
    assert str(found) == "flow:/there/model:/there/texts.txt"
    assert (found.model, found.files) == ("/there/model", ("/there/texts.txt",))
    words = parse_baseline("words:glove.txt")
    assert (words.model, words.files) == (None, ("glove.txt",))
    assert parse_baseline("tf-idf").located(str.upper) == BaselineName("tf-idf")
