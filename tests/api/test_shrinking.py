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


def test_both_are_scored_on_rows_in_memory(base, tmp_path):
    texts = [f"ticket {number} is for row {number % 9}" for number in range(120)]
    scored = [(texts[number], texts[number + 1], number % 5) for number in range(30)]
    done = sentloom.shrink(base, tmp_path / "small", texts, layers=1, steps=1, against=scored)
    assert done.total.metric == "spearman"
    assert done.total.items == 30
