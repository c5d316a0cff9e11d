"""Variants and --set change a recipe by dotted keys."""

import pytest

from sentloom.errors import RecipeError
from sentloom.lab.recipe import with_names, with_overrides, with_variants, without
from sentloom.lab.recipe_yaml import Faults, parse

RECIPE = """\
base: embedded
seeds: [1]
stages:
- {method: simcse, batch: 8}
- {method: simcse}
- {method: mlm, name: simcse-3}
variants:
  large: {simcse.batch: 64}
  other: {base: another}
"""


def forms(*overrides, text=RECIPE):
    faults = Faults()
    overridden = with_overrides(with_variants(with_names(parse(text, "r.yaml", faults)), faults), overrides, faults)
    faults.stop()
    return {name: form.value for name, form in overridden.items()}


def test_stages_without_a_name_are_named_after_their_method():
    assert [stage["name"] for stage in forms()[None]["stages"]] == ["simcse", "simcse-2", "simcse-3"]


def test_every_variant_overrides_the_common_part():
    overridden = forms()
    assert {name: (form["base"], form["stages"][0]["batch"]) for name, form in overridden.items()} == {
        None: ("embedded", 8),
        "large": ("embedded", 64),
        "other": ("another", 8),
    }


def test_the_command_overrides_every_form():
    overridden = forms("simcse.batch=2", "seeds=[3, 4]")
    assert all(form["stages"][0]["batch"] == 2 and form["seeds"] == [3, 4] for form in overridden.values())


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("batch", "KEY=VALUE"),
        ("simsce.batch=2", 'did you mean "simcse"'),
        ("simcse=2", 'the stage "simcse" alone'),
        ("base.x=2", "is below a value that has no keys"),
    ],
)
def test_overrides_that_name_nothing_are_refused(override, problem):
    with pytest.raises(RecipeError, match=problem):
        forms(override)


def test_keys_are_left_out():
    assert without({"a": 1, "b": 2}, "a", "c") == {"b": 2}
    assert without(None, "a") == {}
