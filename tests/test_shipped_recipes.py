"""The recipes that come with the package are sound, and found by name."""

import statistics

import pytest

from sentloom.errors import InputError
from sentloom.recipe import find_recipe, read_recipe, shipped


@pytest.fixture(params=list(shipped()))
def recipe(request):
    return read_recipe(find_recipe(request.param))


def test_every_recipe_is_sound_and_has_a_title(recipe):
    plans = [recipe.resolve(name) for name in recipe.variants] or [recipe.resolve()]
    assert all(plan.title and plan.evaluate for plan in plans)


def test_published_means_are_those_of_their_columns(recipe):
    for name in recipe.variants:
        scores = dict(recipe.resolve(name).published)
        if "mean" in scores:
            mean = scores.pop("mean")
            assert len(scores) == 7
            assert mean == pytest.approx(statistics.mean(scores.values()), abs=0.035), (
                name
            )  # SBERT-NLI is printed as 74.89, its columns give 74.86


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(InputError, match="docstrings"):
        find_recipe("docstring")
    assert find_recipe("docstrings").suffix == ".yaml"
