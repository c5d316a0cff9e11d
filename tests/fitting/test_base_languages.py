"""What a card says about languages; tests/first_use/test_base_languages.py has whole fits."""

import pytest

from sentloom.fitting.bases import card_languages


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
