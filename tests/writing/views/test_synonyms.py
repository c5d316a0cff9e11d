import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.writing.views.settings import Synonyms
from sentloom.writing.views.synonyms import DEBIAN, SynonymReplacement, inflect, lemmas


@pytest.mark.parametrize(
    ("words", "part", "form", "inflected"),
    [
        ("dog", "noun", "s", "dogs"),
        ("domestic dog", "noun", "s", "domestic dogs"),
        ("city", "noun", "s", "cities"),
        ("day", "noun", "s", "days"),
        ("box", "noun", "s", "boxes"),
        ("turn tail", "verb", "ed", "turned tail"),
        ("carry", "verb", "ed", "carried"),
        ("carry", "verb", "ing", "carrying"),
        ("cease", "verb", "ing", "ceasing"),
        ("see", "verb", "ing", "seeing"),
        ("stop", "verb", "ing", "stopping"),
        ("enjoy", "verb", "ed", "enjoyed"),
        ("quick", "adj", "", "quick"),
    ],
)
def test_forms(words, part, form, inflected):
    assert inflect(words, part, form) == inflected


@pytest.mark.parametrize(
    ("word", "form", "lemma"),
    [
        ("cities", "s", "city"),
        ("boxes", "s", "box"),
        ("dogs", "s", "dog"),
        ("stopped", "ed", "stop"),
        ("ceased", "ed", "cease"),
        ("making", "ing", "make"),
        ("carried", "ed", "carry"),
    ],
)
def test_lemmas_of_regular_forms(word, form, lemma):
    assert lemma in lemmas(word, form)


def test_words_that_only_look_inflected():
    assert lemmas("glass", "s") == []
    assert lemmas("red", "ed") == []
    assert lemmas("king", "ing") == []


def replaced(text, share=1.0, seed=0):
    return next(iter(SynonymReplacement(Synonyms(share=share, seed=seed)).views([text])))


def test_every_word_with_synonyms_is_replaced_in_the_same_form(wordnet):
    assert replaced("The box.") == "The case."
    assert replaced("Boxes stopped quickly!") in {
        f"Cases {verb} {adverb}!" for verb in ("halted", "ceased") for adverb in ("rapidly", "speedily")
    }
    assert replaced("two dogs") in ("two domestic dogs", "two Canis familiariss", "two Canis familiarises")


def test_function_words_names_and_unknown_words_are_unchanged(wordnet):
    for text in ("In the Box he is it.", "the CITY", "xyzzy 123 !?", "", "犬"):
        assert replaced(text) == text


def test_irregular_past_forms_are_not_invented(wordnet):
    assert replaced("she ordered it") == "she ordered it"  # its only synonym is tell, and "telled" is not a word


def test_the_share_is_of_all_words(wordnet):
    text = "the box and the city and the box go quickly"  # ten words, four with synonyms
    count = sum(a != b for a, b in zip(text.split(), replaced(text, 0.3).split(), strict=True))
    assert count == 3
    assert sum(a != b for a, b in zip(text.split(), replaced(text, 0.01).split(), strict=True)) == 1


def test_views_depend_only_on_seed_and_text(wordnet):
    text = "the box and the city and the box go quickly"
    maker = SynonymReplacement(Synonyms())
    texts = [f"{text} {number}" for number in range(40)]
    views = list(maker.views(texts))
    assert list(maker.views(texts[::-1])) == views[::-1]
    assert [replaced(text, 0.3) for text in texts[:5]] == views[:5]
    others = SynonymReplacement(Synonyms(seed=1))
    assert list(others.views(texts)) != views
    assert others.identity != maker.identity


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="Debian's wordnet-base is not installed")
def test_on_the_real_wordnet(monkeypatch):
    monkeypatch.delenv("NLTK_DATA", raising=False)
    maker = SynonymReplacement(Synonyms(share=1.0))

    @given(st.text(max_size=80))
    def any_text_has_a_view(text):
        assert next(iter(maker.views([text]))).strip() or not text.strip()

    any_text_has_a_view()
    view = next(iter(maker.views(["The car stopped."])))
    assert view.split()[1] in ("auto", "automobile", "machine", "motorcar")
