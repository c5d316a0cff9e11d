from hypothesis import given
from hypothesis import strategies as st

from sentloom.views.chunking import pieces


def test_a_short_text_is_one_piece_with_single_spaces():
    assert pieces("One. Two!\n\nThree\t four ") == ["One. Two! Three four"]


def test_cuts_stand_behind_sentences_then_between_words_then_anywhere():
    assert pieces("One two. Three four. Five.", 14) == ["One two.", "Three four.", "Five."]
    assert pieces("one two three four", 9) == ["one two", "three", "four"]
    assert pieces("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]


def test_nothing_gives_nothing():
    assert pieces(" \n ") in ([], [""])


@given(st.text(alphabet="ab .!\n", max_size=60), st.integers(1, 20))
def test_no_piece_is_too_long_and_no_character_is_lost(text, longest):
    found = pieces(text, longest)
    assert all(len(piece) <= longest for piece in found)
    assert "".join(found).replace(" ", "") == "".join(text.split())
