"""Recipes: what is filled in, what goes over what, what is said where something is wrong, and the way there and back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sentloom.data.shapes import Shape
from sentloom.engine.building import SHORT_FORMS, own_keys
from sentloom.engine.plan import Recipe, to_yaml
from sentloom.engine.schema import Evaluate, Select, Top
from sentloom.engine.stages import STAGES, Mine, Train
from sentloom.errors import InputError, RecipeError
from sentloom.lab.recipe import read_recipe, without
from sentloom.lab.stages import SynthesizerStage
from sentloom.methods import METHODS
from sentloom.methods.settings import Settings
from sentloom.writing.views.settings import BackTranslation, MaskFill, Pivot, ReadyPairs, Synonyms
from tests.paths import ROOT

FULL = """\
title: Self-guided on STS-B
base: embedded
pooling: first
max_length: 64
stages:
  - name: sg
    method: self-guided
    preset: paper
    data: sts/train.tsv
    columns: {anchor: title, positive: body}
    shape: pairs
    views: {kind: synonyms, share: 0.3}
    transductive: true
    objective: opt3
    batch: 16
  - method: mlm
    data: [a.txt, b.txt]
    pooling: mean@0,-1
select: {on: sts-b/dev, data: folder, every: 50, patience: 10}
evaluate: {sets: [sts-b/dev, sts-b/test], data: folder}
seeds: [1, 2, 3]
trackers: [tensorboard]
variants:
  opt1: {sg.objective: opt1, published: {sts-b/test: 72.61}}
  cls untouched: {stages: []}
"""
SMALL = "base: embedded\nstages:\n  - {name: s, method: simcse, data: a.txt}\n"


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Reads a text as the file recipe.yaml; the working folder is another, empty one."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def read(text: str, *overrides: str) -> Recipe:
        (tmp_path / "recipe.yaml").write_text(text, "utf-8")
        return read_recipe(tmp_path / "recipe.yaml", overrides)

    return read


@pytest.fixture
def faults(recipe):
    """The faults of a text, without the folder: ["recipe.yaml, line 1, ...: .... Expected ..."]."""

    def read(text: str, *overrides: str) -> list[str]:
        with pytest.raises(RecipeError) as caught:
            recipe(text, *overrides)
        *lines, last = str(caught.value).splitlines()
        assert last.startswith("Correct the ")
        assert caught.value.exit_code == 2
        return [re.sub(r"^\S*recipe\.yaml", "recipe.yaml", line).removesuffix(".") for line in lines]

    return read


# What is filled in


def test_a_full_recipe(recipe):
    plan = recipe(FULL).resolve(None)
    assert (plan.title, plan.name, plan.base, plan.pooling, plan.max_length) == (
        "Self-guided on STS-B",
        "recipe",
        "embedded",
        "first",
        64,
    )
    assert plan.select == Select(on="sts-b/dev", data="folder", every=50, patience=10)
    assert plan.evaluate == Evaluate(sets=("sts-b/dev", "sts-b/test"), data="folder")
    assert (plan.seeds, plan.trackers, plan.published) == ((1, 2, 3), ("tensorboard",), {})
    views, sg, mlm = plan.stages
    assert (views.name, views.method, views.data) == ("sg-views", "views", ("sts/train.tsv",))
    columns = {"anchor": "title", "positive": "body"}
    assert (views.columns, views.shape, views.transductive) == (columns, Shape.PAIRS, True)
    assert views.options == Synonyms(share=0.3)
    assert (sg.name, sg.method, sg.preset, sg.data) == ("sg", "self-guided", "paper", ("stage:sg-views",))
    assert (sg.columns, sg.shape, sg.transductive) == (None, None, True)
    assert isinstance(sg.options, METHODS["self-guided"].Options)
    assert (sg.options.objective, sg.options.mask_duplicates) == ("opt3", False)  # the preset's
    assert (sg.settings.batch, sg.settings.betas, sg.settings.eps) == (16, (0.9, 0.9), 1e-8)  # own, preset's, default
    assert (mlm.name, mlm.preset, mlm.data) == ("mlm", None, ("a.txt", "b.txt"))
    assert (mlm.columns, mlm.shape, mlm.transductive) == (None, None, False)


def test_the_smallest_recipe(recipe):
    plan = recipe(SMALL).resolve()
    assert (plan.title, plan.pooling, plan.select, plan.evaluate) == (None, None, None, None)
    assert (plan.seeds, plan.trackers, plan.published) == ((1,), (), {})


def test_own_key_then_recipe_then_preset_then_default(recipe):
    def lengths(text):
        stage = recipe(text).resolve().stages[0]
        return stage.pooling, stage.preset_pooling, stage.max_length

    stage = "stages: [{method: simcse, data: a.txt%s}]"
    assert lengths(f"base: b\n{stage % ''}") == (None, "first", 32)  # the preset's pooling is for a raw model
    assert lengths(f"base: b\npooling: max\nmax_length: 7\n{stage % ''}") == ("max", "first", 7)
    own = stage % ", pooling: mean, max_length: 9"
    assert lengths(f"base: b\npooling: max\nmax_length: 7\n{own}") == ("mean", "first", 9)
    assert lengths("base: b\nstages: [{method: mlm, data: a.txt}]") == (None, None, 64)
    assert lengths(f"base: b\npooling: max\n{stage % ', pooling: null'}") == (None, "first", 32)  # not the recipe's
    assert lengths(f"base: b\npooling: cls\n{stage % ''}") == ("first", "first", 32)


def test_a_presets_prompt_is_for_recipes_that_state_none(recipe):
    stages = "stages: [{method: contrastive, preset: gense, data: d}]"
    own = recipe(f"base: b\n{stages}").resolve()
    assert own.prompt.suffix == " Question: what can we draw from the above sentence?"
    assert (own.stages[0].preset_pooling, own.stages[0].max_length) == ("decoder-first", 64)
    assert recipe(f"base: b\nprompt: null\n{stages}").resolve().prompt is None
    assert recipe(f"base: b\nprompt: {{prefix: x}}\n{stages}").resolve().prompt.prefix == "x"


def test_a_baseline_may_be_scored_but_not_trained(recipe):
    assert recipe("base: 'words:w.txt'\nstages: []").resolve().base == "words:w.txt"
    with pytest.raises(RecipeError, match="a baseline, which cannot be trained"):
        recipe("base: tf-idf\nstages: [{method: simcse, data: d}]")


def test_a_mean_is_over_sets_that_are_scored(recipe):
    plan = recipe("base: b\nstages: []\nevaluate: {sets: [STS12, STS13], means: {both: [STS12, STS13]}}").resolve()
    assert plan.evaluate.means == {"both": ("STS12", "STS13")}
    with pytest.raises(RecipeError, match="a mean over STS14"):
        recipe("base: b\nstages: []\nevaluate: {sets: [STS12], means: {both: [STS14]}}")


@pytest.mark.parametrize("method", METHODS)
def test_every_preset_of_every_method_is_a_stage(recipe, method):
    for preset, values in METHODS[method].PRESETS.items():
        stage = recipe(f"base: b\nstages: [{{method: {method}, preset: {preset}, data: d}}]").resolve().stages[0]
        assert stage.pooling is None
        assert stage.preset_pooling == values.get("pooling")
        assert stage.preset_prompt == values.get("prompt")
        for key, value in without(values, "pooling", "prompt").items():
            kept = [getattr(part, key, None) for part in (stage, stage.options, stage.settings)]
            assert value in TypeAdapter(Any).dump_python(kept, mode="json", exclude_none=True), key
    common = {*own_keys(Train), *SHORT_FORMS, *Settings.model_fields}
    assert not common & set(METHODS[method].Options.model_fields)  # a key means one thing


def test_names_of_stages(recipe):
    stages = "stages: [{method: mlm, data: d}, {method: mlm, data: d}, {name: mlm-2, method: mlm, data: d}]"
    assert [stage.name for stage in recipe(f"base: b\n{stages}").resolve().stages] == ["mlm", "mlm-3", "mlm-2"]


@pytest.mark.parametrize("written", ["5e-5", "5E-05", "0.00005", "+.5e-4", "5.e-5"])
def test_numbers_with_exponents_are_numbers(recipe, written):
    text = SMALL.replace("a.txt", f"a.txt, learning_rate: {written}")
    assert recipe(text).resolve().stages[0].settings.learning_rate == pytest.approx(5e-5)
    assert recipe(SMALL, f"s.learning_rate={written}").resolve().stages[0].settings.learning_rate == pytest.approx(5e-5)


def test_words_that_old_yaml_takes_for_something_else_are_text(recipe):
    plan = recipe(SMALL.replace("embedded", "no") + "title: 2021-01-01\nselect: {on: off, every: 1}\n").resolve()
    assert (plan.base, plan.title, plan.select.on) == ("no", "2021-01-01", "off")


# Paths


def test_paths_in_the_recipes_folder_then_in_the_working_folder_then_as_given(recipe, tmp_path):
    for name in ("both.txt", "here.txt", "work/both.txt", "work/there.txt"):
        (tmp_path / name).touch()
    for folder in ("model", "sets", "embedded", "fill"):
        (tmp_path / folder).mkdir()
    plan = recipe(
        """
base: model
stages:
  - {method: bootstrapped, data: [both.txt, here.txt, there.txt, owner/name@main:train], views: {kind: file, file: here.txt}}
  - {method: bootstrapped, data: embedded, views: {kind: mask-fill, model: fill}}
  - {method: bootstrapped, data: d, views: {kind: back-translation, pivots: [{forward: fill, backward: owner/back}]}}
select: {on: here.txt, every: 1}
evaluate: {sets: [sts-b, here.txt], data: sets}
"""
    ).resolve()
    assert plan.base == str(tmp_path / "model")
    first, _, second, _, third, _ = plan.stages
    paths = [str(tmp_path / name) for name in ("both.txt", "here.txt", "work/there.txt")]
    assert first.data == (*paths, "owner/name@main:train")
    assert first.options == ReadyPairs(file=paths[1])
    assert second.data == ("embedded",)
    assert second.options == MaskFill(model=str(tmp_path / "fill"))
    assert third.options == BackTranslation(pivots=(Pivot(forward=str(tmp_path / "fill"), backward="owner/back"),))
    assert plan.select.on == paths[1]
    assert plan.evaluate == Evaluate(sets=("sts-b", paths[1]), data=str(tmp_path / "sets"))


def test_twin_files_are_found_as_files_are(recipe, tmp_path):
    for name in ("a+b.en", "a.de", "work/c.en", "work/c.de"):
        (tmp_path / name).touch()
    plan = recipe(
        "base: embedded\nstages: [{method: cross-lingual, data: [a+b.en+a.de, c.en+c.de, a+b.en+c.de]}]"
    ).resolve()
    here, there = (f"{tmp_path}/a+b.en+{tmp_path}/a.de", f"{tmp_path}/work/c.en+{tmp_path}/work/c.de")
    assert plan.stages[0].data == (here, there, "a+b.en+c.de")  # both files in one folder, or as it is written


def test_environment_variables(recipe, faults, monkeypatch):
    text = """
base: ${SOME_PLACE}/model
stages: [{method: simcse, data: ["x/${SOME_PLACE}/a.txt"]}]
select: {on: a, data: "${SOME_PLACE}", every: 1}
evaluate: {sets: [a], data: "${SOME_PLACE}"}
title: ${SOME_PLACE}
"""
    monkeypatch.setenv("SOME_PLACE", "nowhere")
    plan = recipe(text).resolve()
    assert (plan.base, plan.stages[0].data, plan.title) == ("nowhere/model", ("x/nowhere/a.txt",), "${SOME_PLACE}")
    assert (plan.select.data, plan.evaluate.data) == ("nowhere", "nowhere")
    monkeypatch.delenv("SOME_PLACE")
    plan = recipe("base: ${SOME_PLACE:-some/where}/model\nstages: []\n").resolve()
    assert plan.base == "some/where/model"
    lines = faults(text + "sed: 1\n")  # also beside another fault
    assert [line.split(":")[0] for line in lines] == [
        "recipe.yaml, line 2, base",
        "recipe.yaml, line 3, stages.simcse.data.1",
        "recipe.yaml, line 4, select.data",
        "recipe.yaml, line 5, evaluate.data",
        "recipe.yaml, line 7, sed",
    ]
    assert all("SOME_PLACE" in line for line in lines[:-1])


# Variants and --set


def test_variants_go_over_the_common_part(recipe):
    read = recipe(FULL)
    assert list(read.variants) == ["opt1", "cls untouched"]
    opt1, bare, common = (read.resolve(name) for name in ("opt1", "cls untouched", None))
    assert (opt1.name, opt1.stages[1].options.objective, opt1.published) == ("opt1", "opt1", {"sts-b/test": 72.61})
    assert (opt1.stages[0], opt1.stages[2]) == (common.stages[0], common.stages[2])
    assert (bare.name, bare.stages, bare.pooling, bare.seeds) == ("cls untouched", (), "first", (1, 2, 3))
    assert common.stages[1].options.objective == "opt3"
    with pytest.raises(InputError, match='did you mean "opt1"'):
        read.resolve("opt2")


def test_published_and_name_of_the_common_part_are_its_own(recipe):
    read = recipe(SMALL + "name: own\npublished: {a: 1}\nvariants: {v: null}\n")
    assert (read.resolve().name, read.resolve().published) == ("own", {"a": 1.0})
    assert (read.resolve("v").name, read.resolve("v").published) == ("v", {})


def test_overrides_of_the_command(recipe):
    read = recipe(
        FULL,
        *("base=other", "select.every=10", "seeds=[7]", "sg.temperature=5e-2", "sg.views.share=0.2"),
        *("mlm.data=[x, y]", "sg.columns.positive=text", "mlm.clip=1", "evaluate=", "title=a = b"),
    )
    for name in (None, "opt1"):
        plan = read.resolve(name)
        assert (plan.base, plan.select.every, plan.seeds, plan.evaluate, plan.title) == (
            "other",
            10,
            (7,),
            None,
            "a = b",
        )
        views, sg, mlm = plan.stages
        assert (views.options, views.columns["positive"]) == (Synonyms(share=0.2), "text")
        assert sg.options.temperature == 0.05
        assert (mlm.data, mlm.settings.clip) == (("x", "y"), 1.0)
    assert read.resolve("cls untouched").stages == ()  # has no stage sg: nothing to override
    assert read.resolve("cls untouched").base == "other"


def test_an_override_goes_over_variants_and_may_begin_a_part(recipe):
    read = recipe(FULL, "sg.objective=sg", "mlm.method=contrastive", "mlm.views.kind=entailment")
    assert {read.resolve(name).stages[1].options.objective for name in (None, "opt1")} == {"sg"}
    assert read.resolve().stages[2].options.kind == "entailment"
    assert recipe(SMALL, "select.on=a", "select.every=3").resolve().select == Select(on="a", every=3)


def test_a_variant_may_bring_stages_of_its_own(recipe):
    read = recipe(SMALL + "variants: {two: {stages: [{method: mlm, data: d}], mlm.batch: 8}}\n", "mlm.steps=3")
    (stage,) = read.resolve("two").stages
    assert (stage.name, stage.settings.batch, stage.settings.steps) == ("mlm", 8, 3)
    assert read.resolve().stages[0].settings.steps is None


# What is refused


def test_every_fault_is_shown_at_once_with_its_line_and_the_nearest_key(faults):
    lines = faults(
        """\
bse: x
base: embedded
stages:
  - name: sg
    method: self-guided
    data: a.txt
    preset: papr
    temprature: 0.1
    objective: opt9
    batch: "16"
    views: {kind: synonyms, shar: 0.3}
  - {method: slf-guided, learning_rate: fast}
select: {on: sts-b/dev, evry: 50}
seeds: [1, 1]
variants:
  one: {sg.objctive: opt1, sgg.batch: 3}
  two: {sg.batch: 1, base.x: 2, sg: 3}
""",
        *("sg.learning_rat=1", "sh.batch=3", "nonsense", "sg.betas=["),
    )
    expected = [
        ("line 1, bse", 'did you mean "base"?'),
        ("line 7, stages.sg.preset", 'did you mean "paper"?'),
        ("line 8, stages.sg.temprature", 'did you mean "temperature"?'),
        ("line 9, stages.sg.objective", '"opt9". Expected one of sg, opt1, opt2, opt3: did you mean'),
        ("line 10, stages.sg.batch", '"16". Expected a whole number'),
        ("line 11, stages.sg.views.shar", 'did you mean "share"?'),
        ("line 12, stages.slf-guided.method", 'did you mean "self-guided"?'),
        ("line 12, stages.slf-guided", 'the key "data" is missing'),
        ("line 12, stages.slf-guided.learning_rate", '"fast". Expected a number'),
        ("line 13, select", 'the key "every" is missing'),
        ("line 13, select.evry", 'did you mean "every"?'),
        ("line 14, seeds", "each value once"),
        ("line 16, variants.one.sgg.batch", 'did you mean "sg"?'),
        ("line 16, variants.one.sg.objctive", 'did you mean "objective"?'),
        ("line 17, variants.two.base.x", "base.x"),
        ("line 17, variants.two.sg", "one of its keys"),
        ("line 17, variants.two.sg.batch", "1. Expected a number greater than or equal to 2"),
    ]
    spots = {line.split(": ")[0] for line in lines}
    assert spots == {f"recipe.yaml, {spot}" for spot, _ in expected} | {
        "set sg.learning_rat",
        "set sh.batch",
        "set",
        "set sg.betas, line 1",
    }
    for spot, said in expected:
        assert any(line.startswith(f"recipe.yaml, {spot}: ") and said in line for line in lines), (spot, lines)
    assert len(lines) == len(expected) + 4  # each is said once, however many variants have it
    assert all(line.startswith("set") for line in lines[-4:])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found null. Expected keys and values"),
        ("- a\n", "Expected keys and values"),
        ("just text\n", "Expected keys and values"),
        ("base: [\n", "line 2: this cannot be read as YAML (while parsing"),
        ("a: 1\n---\nb: 2\n", "line 2: this cannot be read as YAML (expected a single document"),
        (SMALL + "base: again\n", 'line 4, base: the key "base" appears again (first on line 1)'),
        (
            SMALL + "title: !!python/object/apply:os.system [echo]\n",
            "line 4: this cannot be read as YAML (the tag tag:yaml.org,2002:python/object",
        ),
        (SMALL + "title: !!str a\n", "line 4: this cannot be read as YAML (the tag"),
        (SMALL + "title: &a b\nname: *a\n", "line 5: this cannot be read as YAML (an alias is not allowed)"),
        (SMALL + "? [1, 2]\n: 3\n", "line 4: this key is not text"),
        (SMALL + 'title: "\\0"\n', "line 4, title: the text contains a NUL character"),
        (SMALL + 'title: "\\ud800"\n', "line 4, title: the text contains a NUL character or half"),
        (SMALL + "title: \x07\n", "Expected plain YAML"),
        (SMALL + "x: " + "[" * 5000 + "\n", "levels"),
        (SMALL + "x: " + "[" * 30 + "]" * 30 + "\n", "nested too deeply. Expected at most 12"),
        ("base: embedded\n", 'the key "stages" is missing'),
        ("stages: []\n", 'the key "base" is missing'),
        ("base: b\nstages: {}\n", "line 2, stages: found {}. Expected a list"),
        ("base: b\nstages: [7]\n", "line 2, stages.1: found 7. Expected a stage"),
        ("base: ''\nstages: []\n", 'line 1, base: found "". Expected at least 1 character'),
        (SMALL + "seeds: 1\n", "line 4, seeds: found 1. Expected a list"),
        (SMALL + "seeds: []\n", "line 4, seeds: found []. Expected at least one"),
        (SMALL + "seeds: [true]\n", "line 4, seeds.1: found true. Expected a whole number"),
        (SMALL + "seeds: [-1]\n", "Expected a number greater than or equal to 0"),
        (SMALL + f"seeds: [{10**30}]\n", "Expected a whole number"),
        (SMALL + "max_length: 1e999\n", '"1e999". Expected a whole number'),
        (SMALL + "published: {a: .nan}\n", '".nan". Expected a number'),
        (SMALL + "pooling: frst\n", 'line 4, pooling: found "frst". Expected one of first, '),
        (SMALL + f"pooling: mean@{'1' * 5000}\n", "line 4, pooling"),
        (SMALL + "trackers: [tensorbord]\n", 'did you mean "tensorboard"?'),
        (SMALL + "quoted: {why: {titel: x}}\n", 'quoted.why.titel: unknown key "titel"'),
        (SMALL + "variants: []\n", "line 4, variants: found []. Expected names"),
        (SMALL + "variants: {v: 3}\n", "line 4, variants.v: "),
        (SMALL + "variants: {v: {name: other}}\n", 'variants.v.name: unknown key "name"'),
        (SMALL + "variants: {v: {s.batch: {a: 1}}}\n", 'variants.v.s.batch: found {"a": 1}. Expected a whole number'),
        (SMALL.replace("name: s,", "name: base,"), 'the name "base"'),
        (SMALL.replace("name: s,", "name: a.b,"), "Expected a name of letters, digits, _ and -"),
        (SMALL + "  - {name: s, method: mlm, data: d}\n", 'line 4, stages.s.name: the name "s"'),
        (SMALL.replace("a.txt", "a, betas: [0.9]"), "stages.s.betas: the list has 1 values. Expected more"),
        (
            SMALL.replace("a.txt", "a, betas: [0.9, 2]"),
            "stages.s.betas.2: found 2. Expected a number less than or equal to 1",
        ),
        (SMALL.replace("a.txt", "a, epochs: null"), "neither epochs nor steps is given"),
        (SMALL.replace("a.txt", "a, columns: {anchor: a, postive: b}"), "Expected the roles of one shape"),
        (
            SMALL.replace("a.txt", "a, columns: {text: 0}"),
            "columns.text: found 0. Expected text or a number greater than or equal to 1",
        ),
        (
            SMALL.replace("a.txt", "a, columns: {text: t}, shape: pairs"),
            "the columns are those of texts, but the shape is pairs",
        ),
        (SMALL.replace("a.txt", "a, views: synonyms"), 'stages.s.views: found "synonyms". Expected keys and values'),
        (SMALL.replace("a.txt", "a, views: {kind: synonym}"), 'did you mean "synonyms"?'),
        (SMALL.replace("a.txt", "a, views: {kind: back-translation, beams: 3}"), "beams has no effect"),
        (
            SMALL.replace("a.txt", "a, views: {kind: back-translation, pivots: [{forwad: a}]}"),
            'did you mean "forward"?',
        ),
    ],
)
def test_what_is_refused(faults, text, said):
    lines = faults(text)
    assert any(said in line for line in lines), lines
    assert all("Traceback" not in line for line in lines)


def test_files_that_are_no_recipe(tmp_path):
    for content, said in (
        (b"a: \xff\n", "byte 4 and those after it are not UTF-8"),
        (b"#" * 1_000_001, "larger than 1 MB"),
    ):
        (tmp_path / "recipe.yaml").write_bytes(content)
        with pytest.raises(RecipeError, match=said):
            read_recipe(tmp_path / "recipe.yaml")
    for path in (tmp_path, tmp_path / "missing.yaml", tmp_path / ("a" * 5000), tmp_path / "a\0b"):
        with pytest.raises(RecipeError, match="the file cannot be read"):
            read_recipe(path)


def test_a_byte_order_mark_and_crlf(recipe):
    assert recipe("\ufeff" + SMALL.replace("\n", "\r\n")).resolve().base == "embedded"


# There and back

# Without "." and "/", which are folders that exist.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0./"), min_size=1, max_size=20)
PLAIN_TEXTS = TEXTS.filter(lambda text: "${" not in text)
LIKE_YAML = st.sampled_from(
    ["5e-5", "null", "~", "true", "on", "1", "2021-01-01", "a: b", "- a", "#", "é\u2028", "\x85é\n", " a ", "1e999"]
)
NAMES = PLAIN_TEXTS | LIKE_YAML
SHARES = st.floats(0.01, 1)
COMMON_STAGE = {
    "data": NAMES | st.lists(NAMES, min_size=1, max_size=3),
    "columns": st.none() | st.fixed_dictionaries({"anchor": NAMES | st.integers(1, 9), "positive": NAMES}),
    "views": st.none()
    | st.fixed_dictionaries({"kind": st.just("synonyms"), "share": SHARES})
    | st.fixed_dictionaries({"kind": st.just("mask-fill"), "model": NAMES}),
    "transductive": st.booleans(),
    "drop_leaks": st.booleans(),
    "pooling": st.sampled_from([None, "cls", "mean", "mean@0,-1", "last-two"]),
    "max_length": st.none() | st.integers(1, 512),
    "preset": st.sampled_from([None, "default"]),
    "learning_rate": st.floats(1e-12, 1e12),
    "betas": st.tuples(SHARES, SHARES).map(list),
    "steps": st.none() | st.integers(1, 10**9),
    "clip": st.none() | st.floats(1e-9, 10),
}


def _takes_its_views(stage):
    return not stage.get("views") or Shape.PAIRS in METHODS[stage["method"]].SHAPES


def _ends(stage):
    """Without steps, a stage needs the epochs of its preset."""
    return stage.get("steps", 1) is not None or "epochs" in METHODS[stage["method"]].PRESETS["default"]


@st.composite
def recipes(draw):
    """A valid recipe as plain values."""
    optional = {key: value for key, value in COMMON_STAGE.items() if key != "data"}
    stage = st.fixed_dictionaries(
        {"method": st.sampled_from(list(METHODS)), "data": COMMON_STAGE["data"]}, optional=optional
    )
    stages = draw(st.lists(stage.filter(_takes_its_views).filter(_ends), max_size=3))
    top = st.fixed_dictionaries(
        {"base": NAMES},
        optional={
            "title": NAMES,
            "pooling": COMMON_STAGE["pooling"],
            "select": st.fixed_dictionaries(
                {"on": NAMES, "every": st.integers(1, 10**9)}, optional={"patience": st.integers(1, 9)}
            ),
            "evaluate": st.fixed_dictionaries(
                {"sets": st.lists(NAMES, min_size=1, max_size=2)}, optional={"data": NAMES}
            ),
            "seeds": st.lists(st.integers(0, 2**32), min_size=1, max_size=3, unique=True),
            "trackers": st.lists(st.sampled_from(["tensorboard", "wandb"]), unique=True),
            "variants": st.dictionaries(
                NAMES,
                st.fixed_dictionaries(
                    {}, optional={"base": NAMES, "published": st.dictionaries(NAMES, st.floats(-1e9, 1e9))}
                ),
                max_size=2,
            ),
        },
    )
    return {**draw(top), "stages": stages}


def write(path: Path, values: object) -> Path:
    """As JSON in ASCII, which is YAML that needs no writer of ours."""
    text = json.dumps(values, ensure_ascii=False)
    path.write_text(re.sub(r"[^ -~]", lambda match: f"\\U{ord(match[0]):08x}", text), "ascii")
    return path


@given(values=recipes())
@settings(max_examples=25)
def test_a_plan_written_out_is_read_back_equal(values, tmp_path_factory):
    folder = tmp_path_factory.mktemp("there")
    read = read_recipe(write(folder / "recipe.yaml", values))
    for name in (None, *read.variants):
        plan = read.resolve(name)
        (folder / "again.yaml").write_bytes(to_yaml(plan).encode())
        again = read_recipe(folder / "again.yaml")
        assert again.resolve() == plan
        assert to_yaml(again.resolve()) == to_yaml(plan)
        assert again.variants == ()
        assert plan.base == values.get("variants", {}).get(name, {}).get("base", values["base"])
        for stage, written in zip(plan.training, values["stages"], strict=True):
            assert stage.settings.learning_rate == written.get("learning_rate", stage.settings.learning_rate)


def test_every_default_is_written_out(recipe):
    plan = recipe(FULL).resolve("opt1")
    written = yaml.safe_load(to_yaml(plan))
    assert set(written) == {*Top.model_fields, "stages"} - {"quoted", "needs"}  # of the file, not of a plan
    for stage in written["stages"]:
        kind = STAGES[stage["method"]]
        settings = Settings.model_fields if kind.trains() else ()
        assert set(stage) == {*own_keys(kind), *kind.options_model(stage).model_fields, *settings}
    assert (written["name"], written["published"]) == ("opt1", {"sts-b/test": 72.61})


def test_a_plan_is_read_back_from_any_folder(recipe, tmp_path, monkeypatch):
    (tmp_path / "a.txt").touch()
    plan = recipe(SMALL).resolve()
    assert plan.stages[0].data == (str(tmp_path / "a.txt"),)
    (tmp_path / "far").mkdir()
    (tmp_path / "far/kept.yaml").write_text(to_yaml(plan), "utf-8")
    monkeypatch.chdir("/")
    assert read_recipe(tmp_path / "far/kept.yaml").resolve() == plan


# Whatever is written: a recipe or its faults

WORDS = [
    *Top.model_fields,
    "stages",
    "variants",
    *own_keys(Train),
    *own_keys(SynthesizerStage),
    *own_keys(Mine),
    *SHORT_FORMS,
    "kind",
    "share",
    "on",
    "every",
    "sets",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10)
    | st.sampled_from(
        [
            *WORDS,
            *METHODS,
            *STAGES,
            "stage:name",
            "paper",
            "synonyms",
            "mask-fill",
            "${NOT_SET_ANYWHERE}",
            "mean",
            "\ud800",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=15,
)


def check_read_or_refused(path: Path, overrides: tuple[str, ...] = ()) -> None:
    """Only a RecipeError comes out, with a message; or a recipe whose plans can all be written."""
    try:
        read = read_recipe(path, overrides)
    except RecipeError as error:
        said = str(error).splitlines()
    else:
        said = [to_yaml(read.resolve(name)) for name in (None, *read.variants)] + ["Correct the "]
    assert len(said) > 1
    assert said[-1].startswith("Correct the ")


@given(values=VALUES | st.dictionaries(st.sampled_from(WORDS), VALUES), override=st.sampled_from(WORDS), value=VALUES)
@settings(max_examples=30)
def test_any_values(values, override, value, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "recipe.yaml"
    check_read_or_refused(
        write(path, values), (f"{override}.{override}={json.dumps(value)}", f"stages={json.dumps(value)}")
    )


def places(value, keys=()):
    """Every place in plain values."""
    yield keys
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*keys, key))


def changed(value, keys, new):
    if not keys:
        return new
    copy = value.copy()
    copy[keys[0]] = changed(value[keys[0]], keys[1:], new)
    return copy


@given(values=recipes(), data=st.data(), new=VALUES, key=st.sampled_from(WORDS))
@settings(max_examples=30)
def test_a_right_recipe_with_one_value_changed_or_added(values, data, new, key, tmp_path_factory):
    at = data.draw(st.sampled_from(list(places(values))))
    path = tmp_path_factory.mktemp("one") / "recipe.yaml"
    check_read_or_refused(write(path, changed(values, at, new)))
    check_read_or_refused(write(path, changed(values, at, {key: new})))
    check_read_or_refused(write(path, values), (f"{'.'.join(map(str, at))}={json.dumps(new)}",))


@given(text=st.text(), cut=st.integers(0, len(FULL)), length=st.integers(0, 20), override=st.text())
@settings(max_examples=25)
def test_any_text_within_a_right_recipe(text, cut, length, override, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "recipe.yaml"
    path.write_bytes((FULL[:cut] + text + FULL[cut + length :]).encode("utf-8", "surrogatepass"))
    check_read_or_refused(path, (override, f"sg.{override}", f"sg.batch={override}"))


def test_the_example_of_the_page_is_right(recipe, monkeypatch):
    page = ROOT / "docs/recipes.md"
    (example,) = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    monkeypatch.setenv("SENTLOOM_DATA", "data")
    read = recipe(example, "sg.temperature=0.05", "seeds=[1]", "select={on: sts-b/dev, every: 10}")
    assert list(read.variants) == ["opt1", "warm", "sg alone", "first untouched"]
    assert read.resolve("warm").stages[1].options.share == 0.2
    assert read.resolve().seeds == (1,)
    for message in re.findall(r"^    recipe.yaml, line .*$", page.read_text("utf-8"), re.MULTILINE):
        key, value = ("temprature", "1") if "temprature" in message else ("objective", "opt9")
        with pytest.raises(RecipeError) as caught:
            recipe(example, f"sg.{key}={value}")
        assert str(caught.value.problems[0]).partition(": ")[2] == message.partition(": ")[2]
