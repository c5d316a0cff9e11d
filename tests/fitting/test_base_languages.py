"""What a card says about languages; tests/first_use/test_base_languages.py has whole fits."""

import pytest

from sentloom.encoder.catalogue import measured
from sentloom.encoder.catalogue.measured import MeasuredSet
from sentloom.fitting.bases import _better_base, card_languages, load_bases
from tests.fitting.test_request import request


@pytest.mark.parametrize(
    ("header", "codes"),
    [
        ("language: no", ("no",)),
        ("language: [deu, Portuguese, pt-BR, zh_Hans]", ("de", "pt", "zh")),
        ("language: {a: b}", ()),
        ("- language", ()),
    ],
)
def test_languages_in_the_header_of_a_card(tmp_path, header, codes):
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\ntext\n---\n", "utf-8")
    assert card_languages(tmp_path) == codes


def test_a_card_without_a_header(tmp_path):
    (tmp_path / "README.md").write_bytes(b"\xff" * 100_000)
    assert card_languages(tmp_path) == ()


def test_the_advice_is_a_base_for_the_language_and_what_it_gains(monkeypatch):
    sets = (MeasuredSet("de", {"embedded": 20.0, "e5-multilingual": 60.0}), MeasuredSet("en", {"embedded": 90.0}))
    monkeypatch.setattr(measured, "measured_sets", lambda: sets)
    (base,) = load_bases(request())
    said = _better_base(base, "de")
    assert "e5-multilingual" in said
    assert "scores 40.0 points more on German pairs before any training" in said
    assert "(`sentloom models get e5-multilingual`)" in said  # it is not in the cache of a test
    assert "points" not in _better_base(base, "ja")  # which was not measured
    assert "e5-multilingual" not in _better_base(base, "tlh")
