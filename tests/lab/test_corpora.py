"""From public corpora to the papers' data: what is kept, changed and drawn, on rows whose outcome is known."""

import json

import pytest

from sentloom.data.readers import read
from sentloom.errors import InputError
from sentloom.lab.corpora import broken_translations, sentences, translations


def test_web_pages_become_distinct_whole_sentences(tmp_path, sentloom):
    pages = [
        "Home | About\nThe bus leaves at nine o'clock. It was full, e.g. on Monday, of people.\nRead more",
        "The bus leaves at nine o'clock. And nobody wrote the end of this",
    ]
    path = tmp_path / "c4.jsonl"
    path.write_text("".join(json.dumps({"text": page, "url": "u", "timestamp": "t"}) + "\n" for page in pages))
    made = sentences(read(path, shape="texts", columns={"text": "text"}))
    assert made["text"] == ["The bus leaves at nine o'clock.", "It was full, e.g. on Monday, of people."]
    assert made.place(1) == f"{path}, line 1"
    done = sentloom("lab", "corpus", "sentences", path, "--columns", "text=text", "-o", tmp_path / "raw.txt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "raw.txt").read_text().splitlines() == made["text"]


KEPT = ("He said “yes” – twice.", "他说了两次“是”。")
DROPPED = {
    "a tag": ("Press <b>here</b> now.", "现在按这里。"),
    "a long word": (f"See {'x' * 41} for it.", "看这个。"),
    "101 words": (" ".join(["word"] * 101), "字" * 60),
    "a ratio above 4": ("Yes it is.", "字" * 13),
    "the wrong script": ("他说了两次。", "他说了三次。"),
    "a repeat": ('He said "yes" - twice.', KEPT[1]),
}


@pytest.mark.parametrize("why", DROPPED)
def test_translations_are_cleaned(why):
    cleaned, unusable, report = translations(read([KEPT, DROPPED[why]], shape="parallel"))
    assert cleaned["source"] == ['He said "yes" - twice.']
    assert cleaned["target"] == [KEPT[1]]
    assert unusable == (why in ("a tag", "a long word"))
    assert report.rows_before - report.rows_after == 1 - unusable


def test_long_chinese_sentences_are_no_long_words():
    pair = ("A long sentence with twelve words or so is what we have here.", "字" * 45)
    assert len(translations(read([pair], shape="parallel"))[0]) == 1


def test_of_1000_translations_750_get_the_target_of_a_later_row():
    rows = [(f"Sentence {number}.", f"句子{number}。") for number in range(2000)]
    made = broken_translations(read(rows, shape="parallel"))
    assert made["sentence2"] == [source for source, _ in rows[:1000]]
    assert made["sentence1"][:250] == [target for _, target in rows[:250]]
    others = made["sentence1"][250:]
    assert len(set(others)) == 750
    assert set(others) <= {target for _, target in rows[1000:]}
    assert made["score"] == [5.0] * 250 + [0.0] * 750
    assert made["sentence1"] == broken_translations(read(rows, shape="parallel"))["sentence1"]


def test_too_few_translations_to_draw_from_are_refused():
    rows = [(f"Sentence {number}.", f"句子{number}。") for number in range(1749)]
    with pytest.raises(InputError, match=r"it has 1,749 rows.*at least 1,750"):
        broken_translations(read(rows, shape="parallel"))
