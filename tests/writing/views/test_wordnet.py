import pytest

from sentloom.errors import MissingPart
from sentloom.writing.views.synonyms import DEBIAN, WordNet, candidates, find_wordnet
from tests.writing.views.small_parts import build_wordnet


def test_the_other_words_of_the_most_frequent_sense(wordnet):
    words = WordNet(wordnet)
    assert words.synonyms("noun", "dog") == ("domestic dog", "Canis familiaris")
    assert words.synonyms("noun", "canis familiaris") == ("dog", "domestic dog")
    assert words.synonyms("noun", "frump") == ("dog",)
    assert words.synonyms("adj", "abounding") == ("galore",)
    assert "licence" not in words.index["noun"]
    assert words.irregular_verbs == {"tell", "run"}


def test_nltk_data_is_searched_first(wordnet):
    assert find_wordnet() == wordnet


def test_an_incomplete_folder_is_skipped(wordnet, tmp_path):
    (wordnet / "data.adv").unlink()
    assert find_wordnet(candidates(build_wordnet(tmp_path / "debian"))) == tmp_path / "debian"


def test_nltk_data_in_the_home_folder_is_found(monkeypatch, tmp_path):
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = build_wordnet(tmp_path / "nltk_data/corpora/wordnet")
    assert find_wordnet(candidates(tmp_path / "nothing")) == folder


def test_the_error_names_what_to_install(tmp_path):
    with pytest.raises(MissingPart, match="wordnet-base") as error:
        find_wordnet([tmp_path])
    assert "index.noun" in str(error.value)
    assert "NLTK_DATA" in str(error.value)


def test_the_hash_depends_on_the_files(wordnet):
    before = WordNet(wordnet).sha256
    with (wordnet / "index.adv").open("a") as file:
        file.write("swiftly r 1 0 1 0 00000050  \n")
    assert WordNet(wordnet).sha256 != before


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="Debian's wordnet-base is not installed")
def test_the_real_wordnet():
    words = WordNet(DEBIAN)
    assert words.synonyms("noun", "dog") == ("domestic dog", "Canis familiaris")
    assert "auto" in words.synonyms("noun", "car")
    assert len(words.index["noun"]) > 100_000
    every = [(part, word) for part, known in words.index.items() for word in list(known)[::500]]
    assert all(word not in words.synonyms(part, word) for part, word in every)
