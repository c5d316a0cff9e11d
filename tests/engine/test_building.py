"""Recipes with stages that make a model or data: what is filled in, and references that are refused."""

import pytest

from sentloom.engine.building import stage
from sentloom.engine.plan import to_yaml
from sentloom.engine.stages import STAGES, Stage
from sentloom.errors import RecipeError
from sentloom.lab.recipe import read_recipe
from sentloom.methods import METHODS
from sentloom.methods.settings import Settings
from sentloom.writing.filters import Filtering
from sentloom.writing.sampling import Sampling

WARM = "  - {name: warm, method: denoising, model: t5, data: raw.txt}\n"
WRITER = (
    "  - {name: writer, method: synthesizer, model: 'stage:warm', data: nli.tsv, seed: 4, wording: {true: 'yes'}}\n"
)
WRITTEN = "  - {name: written, method: synthesize, model: 'stage:writer', data: raw.txt, rows: 9, top_p: 0.8}\n"
SYNTHETIC = "  - {name: synthetic, method: contrastive, data: ['stage:written', 'stage:written/pairs', a.tsv]}\n"
ALL = f"base: b\nprompt: {{suffix: ' so'}}\nstages:\n{WARM}{WRITER}{WRITTEN}{SYNTHETIC}"


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text, *overrides):
        (tmp_path / "recipe.yaml").write_text(text, "utf-8")
        return read_recipe(tmp_path / "recipe.yaml", overrides)

    return read


def test_what_is_filled_in(recipe):
    plan = recipe(ALL, "written.threshold=0.8").resolve()
    warm, writer, written, synthetic = plan.stages
    assert (warm.model, writer.model, written.model) == ("t5", "stage:warm", "stage:writer")
    assert (warm.seed, writer.seed, written.options.seed) == (1, 4, 1)
    assert (writer.options.wording.true, writer.options.wording.false) == ("yes", "false")
    assert (writer.settings.batch, writer.settings.optimizer, writer.settings.epochs) == (64, "adafactor", 10)
    assert (written.settings, written.options.rows) == (None, 9)
    assert written.options.part(Sampling) == Sampling(top_p=0.8)
    assert written.options.part(Filtering) == Filtering(threshold=0.8)
    assert synthetic.data == ("stage:written", "stage:written/pairs", "a.tsv")
    assert plan.prompt.suffix == " so"


def test_the_seed_and_the_presets_of_a_synthesis(recipe):
    official = "base: b\nstages:\n" + WARM + WRITER + WRITTEN.replace("rows: 9", "seed: 7, preset: official-code")
    options = recipe(official).resolve().stages[2].options
    assert options.part(Sampling) == Sampling(top_p=0.8, top_k=50, seed=7)
    own = {"drop_equal": False, "language": False, "finished": False, "near_duplicates": 1.0}  # filters of ours are off
    assert options.part(Filtering) == Filtering(source_words=8, words=5, substring=True, **own)


REQUIRED = {"vocabulary": "size: 200", "views": "kind: synonyms", "merge": "models: [base, m]"}


@pytest.mark.parametrize("method", [method for method in STAGES if method not in METHODS])
def test_every_preset_is_a_stage_and_a_key_means_one_thing(recipe, method):
    kind: type[Stage] = STAGES[method]
    own = REQUIRED.get(method, "model: m" if "model" in kind.model_fields else "")
    data = "data: d, " if "data" in kind.model_fields else ""
    for preset, values in kind.presets(method).items():
        text = f"base: b\nstages: [{{method: {method}, preset: {preset}, {data}{own}}}]"
        (stage,) = recipe(text).resolve().stages
        for key, value in values.items():
            assert value in (getattr(stage.options, key, None), getattr(stage.settings, key, None)), key
    keys = [{*kind.model_fields}, {*type(stage.options).model_fields}, {*Settings.model_fields}]
    assert not keys[0] & keys[1]
    assert not keys[1] & keys[2] or not kind.trains()


def test_written_out_and_read_again(recipe):
    for text in (ALL, f"stages:\n{WARM}{WRITER}", f"base: b\nstages:\n{WARM}{WRITER}{WRITTEN}"):
        plan = recipe(text).resolve()
        assert recipe(to_yaml(plan)).resolve() == plan
    making_behind = recipe(f"base: b\nstages:\n  - {{name: nli, method: contrastive, data: d}}\n{WARM}").resolve()
    assert recipe(to_yaml(making_behind)).resolve() == making_behind
    assert making_behind.once == {"warm"}  # it runs before anything that depends on the seed


@pytest.mark.parametrize(
    ("text", "place", "found", "wanted"),
    [
        (ALL.replace("stage:warm", "stage:worm"), "writer.model", '"stage:worm"', 'did you mean "stage:warm"?'),
        (ALL.replace("'stage:written',", "'stage:writen',"), "synthetic.data.1", '"stage:writen"', '"stage:written"'),
        (
            ALL.replace("stage:writer", "stage:warm"),
            *(
                "written.model",
                '"stage:warm", but that stage, of the method denoising, produces something else',
                '"stage:writer"',
            ),
        ),
        (
            ALL.replace("model: t5", "model: 'stage:writer'"),
            *(
                "warm.model",
                '"stage:writer", but that stage does not come before',
                "a folder or a hub name: no earlier stage",
            ),
        ),
        (
            ALL.replace("data: raw.txt}", "data: 'stage:written'}"),
            *("warm.data", '"stage:written", but that stage does not come before', "a file: no earlier stage"),
        ),
        (
            ALL.replace("a.tsv]", "'stage:writer']"),
            "synthetic.data.3",
            "of the method synthesizer, produces something else",
            "stage:written",
        ),
        (ALL.replace("rows: 9", "row: 9"), "written.row", 'unknown key "row"', 'did you mean "rows"?'),
        (ALL.replace("rows: 9", "batch: 9"), "written.batch", 'unknown key "batch"', "Expected"),
        (ALL.replace("rows: 9", "top_p: 2, workers: 2").replace(", top_p: 0.8", ""), "written.top_p", "2", "1"),
        (ALL.replace("rows: 9", "workers: 2"), "written", "2 workers need the engine ray", ""),
        (ALL.replace("rows: 9", "backend: ctranslate"), "written.backend", '"ctranslate"', '"ctranslate2"'),
        (ALL.replace("{true: 'yes'}", "{treu: 'yes'}"), "writer.wording.treu", 'unknown key "treu"', '"true"'),
        (ALL.replace("model: t5, ", ""), "warm", 'the key "model" is missing', ""),
        (ALL.replace("synthesizer", "synthesiser"), "writer.method", '"synthesiser"', '"synthesizer"'),
        (ALL.replace("suffix: ' so'", "sufix: ' so'"), "prompt.sufix", 'unknown key "sufix"', '"suffix"'),
        (ALL.replace("suffix: ' so'", "suffix: ''"), "prompt", "neither a prefix nor a suffix", "Expected"),
        (ALL.replace("a.tsv]", "a.tsv], data_share: 0"), "synthetic.data_share", "0", "greater than 0"),
        (ALL.replace("base: b\n", ""), "recipe.yaml", 'the key "base" is missing', ""),
        (f"stages:\n{WARM}".replace("data: raw.txt", "dat: raw.txt"), "warm.dat", 'unknown key "dat"', '"data"'),
    ],
)
def test_what_is_refused(recipe, text, place, found, wanted):
    with pytest.raises(RecipeError) as caught:
        recipe(text)
    lines = str(caught.value).splitlines()
    assert any(place in line and found in line and wanted in line for line in lines), lines
    assert ("base" in place) or not text.startswith("stages") or not any('no "base"' in line for line in lines)


def test_a_stage_is_named_by_its_method(recipe):
    plan = recipe("stages:\n  - {method: denoising, model: t5, data: d}\n  - {method: denoising, model: 'stage:denoising', data: d}\n").resolve()  # fmt: skip
    assert [stage.name for stage in plan.stages] == ["denoising", "denoising-2"]
    assert plan.base is None


def test_in_python_a_stage_is_built_as_in_a_recipe_and_everything_wrong_is_reported(recipe):
    plan = recipe("base: b\nstages: [{name: s, method: simcse, data: a.txt, batch: 8, temperature: 0.1}]").resolve()
    assert plan.stages == (stage("simcse", name="s", data="a.txt", batch=8, temperature=0.1),)
    with pytest.raises(RecipeError) as caught:
        stage("simcse", name="s", data=[], bach=8, temperature=-1)
    assert len(caught.value.problems) == 3
