"""Scripts and words, for sentences whose script and words were determined by a reader."""

import pyarrow as pa
import pytest

from sentloom.data.hygiene.languages import SCRIPTS, dominant_scripts, word_counts


def script(text: str) -> str:
    return SCRIPTS[dominant_scripts(pa.array([text], pa.large_string()))[0]]


def words(text: str) -> int:
    return int(word_counts(pa.array([text], pa.large_string()))[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The river is wide.", "Latin"),
        ("Köln liegt am Rhein, Łódź nicht.", "Latin"),
        ("Tiếng Việt", "Latin"),
        ("Река широкая.", "Cyrillic"),
        ("Το ποτάμι είναι πλατύ.", "Greek"),
        ("הנהר רחב", "Hebrew"),
        ("النهر واسع", "Arabic"),
        ("नदी चौड़ी है", "Devanagari"),
        ("แม่น้ำกว้าง", "Thai"),
        ("강은 넓다", "Hangul"),
        ("かわはひろい", "Kana"),
        ("河很宽。", "Han"),
        ("𠀋𠂢", "Han"),  # outside the basic multilingual plane
        ("գետը լայն է", "other"),
        ("42 + 1 = 43!", "none"),
        ("🙂🙂", "none"),
        ("", "none"),
        ("Москва (Moscow) столица", "Cyrillic"),
        ("the word слово in English text", "Latin"),
        ("\U0010ffff", "none"),
    ],
)
def test_dominant_script(text: str, expected: str) -> None:
    assert script(text) == expected


def test_texts_are_counted_separately() -> None:
    texts = pa.array(["abc", "", "где", "一二三", "x", "1"], pa.large_string())
    assert [SCRIPTS[number] for number in dominant_scripts(texts)] == [
        "Latin",
        "none",
        "Cyrillic",
        "Han",
        "Latin",
        "none",
    ]
    assert [SCRIPTS[number] for number in dominant_scripts(texts.slice(2, 2))] == ["Cyrillic", "Han"]
    assert len(dominant_scripts(texts.slice(0, 0))) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("   ", 0),
        ("The river is wide.", 4),
        ("  two\u00a0words\u3000", 2),
        ("Река широкая", 2),
        ("강은 넓다", 2),
        ("河很宽", 3),
        ("使用 Python 很好", 5),
        ("かわ", 2),
        ("แม่น้ำ", 2),  # six characters: four and two
        ("don't well-known", 2),
    ],
)
def test_words(text: str, expected: int) -> None:
    assert words(text) == expected
