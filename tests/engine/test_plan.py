"""Plans: what is the same under every seed, and variants by name."""

from pathlib import Path

import pytest
import yaml

from sentloom.encoder.tokens import Prompt
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan, Recipe, stage_values, to_yaml
from sentloom.errors import InputError

TRAIN = stage("simcse", name="train", data="a.txt", steps=7)
PLAN = Plan("mine", base="embedded", stages=(TRAIN,))


def test_training_depends_on_the_seed_and_data_made_before_it_does_not():
    views = stage("views", name="views", data="a.txt", kind="synonyms")
    after = stage("simcse", name="after", data="stage:views", steps=1)
    plan = Plan("mine", base="embedded", stages=(views, after))
    assert plan.once == {"views"}
    assert plan.training == (after,)


def test_the_prompt_is_for_all_sentences():
    assert PLAN.prompts is None
    assert Plan("mine", base="embedded", prompt=Prompt("q: ")).prompts == {"symmetric": Prompt("q: ")}


def test_unknown_variants_are_refused_with_the_nearest_name():
    recipe = Recipe(Path("r.yaml"), ("large",), {None: PLAN, "large": PLAN})
    assert recipe.resolve() is recipe.resolve("large") is PLAN
    with pytest.raises(InputError, match=r'r\.yaml: there is no variant "lrge".*did you mean "large"'):
        recipe.resolve("lrge")


def test_the_written_plan_has_every_value_and_its_stages_are_built_again():
    written = yaml.safe_load(to_yaml(PLAN))
    assert (written["name"], written["base"], written["seeds"]) == ("mine", "embedded", [1])
    assert written["stages"] == [stage_values(TRAIN)]
    assert stage(**stage_values(TRAIN)) == TRAIN
