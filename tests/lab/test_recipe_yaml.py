"""YAML as plain values with their lines; faults are collected."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sentloom.engine.plan import Dumper
from sentloom.engine.schema import one_of, show
from sentloom.errors import Problem, RecipeError
from sentloom.lab.recipe_yaml import Faults, Spot, Tree, parse, read_file

TEXT = """\
base: embedded
stages:
- method: simcse
  rate: 5e-5
- name: last
  on: no
"""


def values(text):
    faults = Faults()
    tree = parse(text, "r.yaml", faults)
    faults.stop()
    return tree


def test_values_are_those_of_yaml_1_2_and_know_their_lines():
    tree = values(TEXT)
    assert tree.value == {
        "base": "embedded",
        "stages": [{"method": "simcse", "rate": 5e-5}, {"name": "last", "on": "no"}],
    }
    assert tree.spot(("stages", 0, "rate")) == Spot("r.yaml", "line 4, stages.simcse.rate")
    assert tree.spot(("stages", 1, "missing")) == Spot("r.yaml", "line 5, stages.last")


def test_a_part_can_be_taken_out_and_replaced():
    tree = values(TEXT)
    part = tree.below(("stages", 0))
    assert (part.value["method"], part.spot(("rate",)).place) == ("simcse", "line 4, stages.simcse.rate")
    new = tree.put(("stages", 0, "rate"), Tree(1, {(): Spot("--set", "")}))
    assert new.value["stages"][0] == {"method": "simcse", "rate": 1}
    assert new.spot(("stages", 0, "rate")) == Spot("--set", "")
    assert tree.value["stages"][0]["rate"] == 5e-5
    with pytest.raises(KeyError):
        tree.put(("base", "x"), part)


def test_all_faults_are_reported_together_in_line_order():
    with pytest.raises(RecipeError) as refused:
        values("a: 1\nb: 2\na: 3\nb: 4\n")
    assert [problem.place for problem in refused.value.problems] == ["line 3, a", "line 4, b"]


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x\n", "a: !!python/name:os.system\n", "a: [1\n", "[" * 5000])
def test_aliases_tags_and_broken_yaml_are_refused(text):
    with pytest.raises(RecipeError, match=r"r\.yaml"):
        values(text)


def test_files_that_are_not_small_utf8_are_refused(tmp_path):
    for content, problem in (
        (b"a: \xff", "byte 4 and those after it are not UTF-8"),
        (b"a" * 1_000_001, "larger than 1 MB"),
    ):
        (tmp_path / "r.yaml").write_bytes(content)
        with pytest.raises(RecipeError, match=problem):
            read_file(tmp_path / "r.yaml", Faults())


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
        | st.integers(-(10**9), 10**9)
        | st.booleans()
        | st.none(),
    )
)
def test_written_values_are_read_back(mapping):
    assert values(yaml.dump(mapping, Dumper=Dumper, allow_unicode=True)).value == mapping


def test_names_in_messages():
    assert one_of("temprature", ["temperature", "batch"]) == 'one of temperature, batch: did you mean "temperature"?'
    assert one_of("x", ["a", "b"], "a file, or ") == "a file, or one of a, b"
    many = [*"abcdefgh", "seeds"]
    assert one_of("seed", many, "a key, ") == 'did you mean "seeds"?'
    assert str(Problem("r.yaml", "line 1", 'unknown key "seed"', one_of("seed", many))) == (
        'r.yaml, line 1: unknown key "seed"; did you mean "seeds"?'
    )


def test_the_advice_names_what_is_at_fault():
    problems = {"r.yaml": "Correct the recipe.", "set a": "Correct the recipe and the override (set)."}
    faults = Faults()
    for file, advice in problems.items():
        faults.add(Spot(file, ""), "wrong", "right")
        with pytest.raises(RecipeError) as refused:
            faults.stop()
        assert str(refused.value).splitlines()[-1] == advice
    with pytest.raises(RecipeError, match=r"\nCorrect the override \(set\)\.$"):
        Faults().refuse(Spot("set a", ""), "wrong", "right")
    with pytest.raises(RecipeError, match=r"\(No such file or directory\)\. Expected a YAML file\.\nCheck the path\.$"):
        read_file(Path("nofile.yaml"), Faults())


def test_values_in_messages():
    assert show("a" * 100) == '"' + "a" * 79 + "..."
