"""`shrink` refuses before it does any work."""

import pytest

import sentloom


def test_the_model_itself_and_wrong_types_are_refused(base, tmp_path):
    with pytest.raises(sentloom.SentloomError, match="is the model to shrink"):
        sentloom.shrink(base, base, ["a text"])
    with pytest.raises(sentloom.SentloomError, match="layers"):
        sentloom.shrink(base, tmp_path / "small", ["a text"], layers="two")
    with pytest.raises(sentloom.SentloomError, match="too few to hold some out"):
        sentloom.shrink(base, tmp_path / "small", ["a text", "another"])
    assert not (tmp_path / "small").exists()
