"""`sentloom fit recipe.yaml`: what is refused, what is said, and a real race of two variants."""

import pytest
import yaml

from sentloom import fit
from sentloom.data import read
from sentloom.errors import InputError
from sentloom.fitting.result import FitResult
from sentloom.lab.fit_recipe import read_fit_recipe
from tests.fitting import small_base

STAGE = {"name": "pairs", "method": "contrastive", "data": "faq.tsv", "batch": 32, "steps": 15, "learning_rate": 5e-5}


@pytest.fixture
def write(tmp_path):
    small_base.pairs(tmp_path / "faq.tsv")

    def make(**recipe):
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump({"base": "embedded", "stages": [STAGE], **recipe}, sort_keys=False), "utf-8")
        return path

    return make


def read_it(path, said=None):
    return read_fit_recipe(path, (said if said is not None else []).append)


def test_variants_are_routes_and_their_files_are_inputs(write, tmp_path):
    small_base.pairs(tmp_path / "faq.tsv")
    variants = {"fast": {"pairs.learning_rate": 1e-3}, "slow": {"pairs.learning_rate": 1e-5}}
    routes = read_it(write(variants=variants, seeds=[7]))
    assert [route.name for route in routes.routes] == ["fast", "slow"]
    assert [route.stages[0].settings.learning_rate for route in routes.routes] == [1e-3, 1e-5]
    assert [source.name for source in routes.sources] == [str(tmp_path / "faq.tsv")]
    assert (routes.base, routes.seed) == ("embedded", 7)
    instead = routes.reading([tmp_path / "1-pairs.parquet"])
    assert {route.stages[0].data for route in instead.routes} == {(str(tmp_path / "1-pairs.parquet"),)}


def test_a_recipe_without_variants_is_one_route(write):
    assert [route.name for route in read_it(write()).routes] == ["recipe"]


def test_what_is_not_used_is_said(write):
    said = []
    read_it(write(seeds=[3, 4], evaluate={"sets": ["faq.tsv"]}), said)
    assert "Only the first seed of the recipe, 3, is used." in said
    assert any("`evaluate` is not used" in line for line in said)
    said.clear()
    read_it(write(), said)
    assert said == []


def test_a_recipe_without_an_encoder_and_variants_with_different_bases_are_refused(write, tmp_path):
    with pytest.raises(InputError, match="'recipe' trains no encoder"):
        read_it(write(stages=[]))
    writer = {"name": "w", "method": "denoising", "model": "t5", "data": "faq.tsv", "steps": 5}
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({"stages": [writer]}), "utf-8")
    with pytest.raises(InputError, match="trains no encoder"):
        read_it(path)
    with pytest.raises(InputError, match=r"its variants have different bases \(embedded, other\)"):
        read_it(write(variants={"one": {}, "two": {"base": "other"}}))


def test_what_the_recipe_says_itself_is_not_given_beside_it(write, tmp_path):
    with pytest.raises(InputError, match="together with other data"):
        fit([write(), tmp_path / "faq.tsv"], tmp_path / "model")
    for option, value in {"base": "embedded", "budget": "10m", "seed": 1, "writer": "w", "shape": "pairs"}.items():
        with pytest.raises(InputError, match=f": {option} cannot be given with a recipe, which sets it"):
            fit(write(), tmp_path / "model", **{option: value})  # also if it is the default
    with pytest.raises(InputError, match="base and seed cannot be given with a recipe, which sets them"):
        fit(write(), tmp_path / "model", base="embedded", seed=1)


def test_the_command_refuses_an_option_that_a_recipe_sets(write, sentloom, tmp_path):
    done = sentloom("fit", write(), "-o", tmp_path / "model", "--base", "embedded")
    assert done.returncode == 2
    assert "leave out --base, or change the recipe" in done.stderr.replace("\n", " ").casefold()


def test_a_missing_file_is_reported_with_its_line(write, sentloom, tmp_path):
    path = write(stages=[{**STAGE, "data": "no.tsv"}, {**STAGE, "name": "more", "data": "nor.tsv"}])
    lines = path.read_text().splitlines()
    done = sentloom("fit", path, "-o", tmp_path / "model")
    assert done.returncode == 2
    for name, stage in (("no.tsv", "pairs"), ("nor.tsv", "more")):
        place = f"{path}, line {lines.index(f'  data: {name}') + 1}, stages.{stage}.data"
        assert f'{place}: there is no file or folder "{name}".' in done.stderr
    assert not (tmp_path / "model").exists()


def test_two_variants_race_on_a_small_base(base, write, sentloom, tmp_path):
    small_base.pairs(tmp_path / "faq.tsv")
    variants = {
        "useless": {"pairs.learning_rate": 1e-9},
        "useful": {"pairs.learning_rate": 5e-5},
        "lacking": {"pairs.views": {"kind": "mask-fill", "model": "owner/not-here"}},
    }
    recipe = write(base=str(base), variants=variants, seeds=[1, 2])
    output = tmp_path / "model"
    done = sentloom("fit", recipe, "-o", output)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Only the first seed of the recipe, 1, is used." in done.stdout
    assert "as long as the recipe says" in done.stdout
    result = FitResult.read(tmp_path / "model.fit" / "report.json")
    lacking = result.runs[-1]
    assert lacking.verdict.startswith("failed: ")  # alone: the others have raced
    assert "lacking failed: " in done.stdout
    assert [(run.route, run.steps, run.verdict) for run in result.runs] == [
        ("useless", 15, "finished"),
        ("useful", 15, "won"),
        ("lacking", 0, lacking.verdict),
    ]
    assert result.base == str(base)
    assert result.command == f"sentloom fit {recipe} -o {output}"
    assert (output / "model.safetensors").is_file()
    (source,) = result.sources
    (rows,) = (tmp_path / "model.fit" / "data").glob("*-train.parquet")
    assert source.rows.train == len(read(rows)) < source.rows.read == 500
    again = sentloom("fit", recipe, "-o", output)
    assert "Resuming the plan" in again.stdout
    assert again.stdout.count("done before") == 2
