from hypothesis import given
from hypothesis import strategies as st

from sentloom.writing.views.translation import chunks


def test_a_short_text_is_one_chunk_with_single_spaces():
    assert chunks("One. Two!\n\nThree\t four ") == ["One. Two! Three four"]


def test_splits_after_sentences_else_between_words_else_anywhere():
    assert chunks("One two. Three four. Five.", 14) == ["One two.", "Three four.", "Five."]
    assert chunks("one two three four", 9) == ["one two", "three", "four"]
    assert chunks("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]


def test_blank_text_gives_no_chunks():
    assert chunks(" \n ") in ([], [""])


@given(st.text(alphabet="ab .!\n", max_size=60), st.integers(1, 20))
def test_no_chunk_is_too_long_and_no_character_is_lost(text, longest):
    parts = chunks(text, longest)
    assert all(len(chunk) <= longest for chunk in parts)
    assert "".join(parts).replace(" ", "") == "".join(text.split())
