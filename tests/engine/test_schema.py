"""Keys of a recipe: valid values become a model, and everything else is reported with its place."""

import pytest

from sentloom.engine.schema import TOP, Top, validated


def test_valid_values_become_the_model():
    top, problems = validated(Top, {"base": "embedded", "pooling": "cls", "seeds": [1, 2]})
    assert problems == []
    assert (top.base, top.pooling, top.seeds) == ("embedded", "first", (1, 2))


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"seeds": [1, 1]}, ("seeds",)),
        ({"seeds": []}, ("seeds",)),
        ({"seeds": [1, -1]}, ("seeds", 1)),
        ({"max_length": "long"}, ("max_length",)),
        ({"select": {"on": "sts-b/dev"}}, ("select",)),
        ({"evaluate": {"sets": []}}, ("evaluate", "sets")),
        ({"prompt": {"prefix": ""}}, ("prompt",)),
        ({"bse": "embedded"}, ()),
    ],
)
def test_problems_have_a_place(values, place):
    top, problems = validated(Top, values)
    assert top is None
    assert len(problems) == 1
    assert problems[0][0][: len(place)] == place


def test_a_misspelt_key_is_answered_with_the_nearest_one():
    _, ((_, problem, expected),) = validated(Top, {"bse": "embedded"})
    assert "bse" in problem
    assert 'did you mean "base"' in expected


def test_overrides_start_with_any_key_but_the_name():
    assert "stages" in TOP
    assert "name" not in TOP
