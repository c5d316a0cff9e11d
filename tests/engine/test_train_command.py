"""`sentloom lab train RECIPE -o DIR`: models, results and resolved recipes; again, nothing is done twice."""

import json
from statistics import mean, stdev

import pytest

from sentloom.encoder import Encoder
from sentloom.engine.evaluation_sets import find_evaluation_set
from sentloom.lab.recipe import read_recipe
from sentloom.locks import alone_in
from tests.encoder.small_models import SENTENCES


def files_of(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_recipe_alone(kitchen, sentloom):
    recipe, out = kitchen.recipe({"method": "simcse"}, title="A test"), kitchen.folder / "out"
    done = sentloom("lab", "train", recipe, "-o", out)
    assert done.returncode == 0, done.stderr
    assert f"written: {out / 'model'}" in done.stdout
    assert "A test" in done.stdout
    results = json.loads((out / "results.json").read_text())
    run, row = results["runs"][0], results["rows"][0]
    scored = str(kitchen.folder / "scored.tsv")
    assert run["after"][scored] == row["after"][scored]
    assert row["deviation"] == {scored: None}
    assert (out / run["model"] / "model.safetensors").is_file()
    assert Encoder.load(out / "model").fingerprint() == run["stages"][0]["fingerprint"]
    assert Encoder.load(out / "model").encode(SENTENCES).shape == (8, 32)
    change = run["after"][scored] - run["before"][scored]
    assert f"{run['after'][scored]:.2f} ({change:+.2f})" in (out / "results.md").read_text()
    assert read_recipe(out / "recipe.yaml").resolve() == read_recipe(recipe).resolve()

    before, text = files_of(out / "stages") | files_of(out / "scores"), (out / "results.json").read_text()
    again = sentloom("lab", "train", recipe, "-o", out)
    assert again.returncode == 0
    assert files_of(out / "stages") | files_of(out / "scores") == before
    assert (out / "results.json").read_text() == text


def test_the_resolved_recipe_is_the_same_work(kitchen, sentloom):
    out = kitchen.folder / "out"
    assert (
        sentloom("lab", "train", kitchen.recipe({"method": "self-guided", "head_width": 8}), "-o", out).returncode == 0
    )
    before = files_of(out / "stages")
    assert sentloom("lab", "train", out / "recipe.yaml", "-o", out).returncode == 0
    assert files_of(out / "stages") == before


def test_variants_seeds_and_overrides(kitchen, sentloom):
    variants = {"base": {"stages": []}, "hot, 0.5": {"simcse.temperature": 0.5}, "plain": {}}
    recipe = kitchen.recipe({"method": "simcse"}, variants=variants)
    out = kitchen.folder / "out"
    done = sentloom("lab", "train", recipe, "-o", out, "--set", "seeds=[1, 2]", "--set", "simcse.steps=3")
    assert done.returncode == 0, done.stderr
    results = json.loads((out / "results.json").read_text())
    assert [(row["name"], row["seeds"]) for row in results["rows"]] == [("base", 1), ("hot, 0.5", 2), ("plain", 2)]
    assert [(run["plan"], run["seed"]) for run in results["runs"]] == [
        ("base", 1),
        ("hot, 0.5", 1),
        ("hot, 0.5", 2),
        ("plain", 1),
        ("plain", 2),
    ]
    scored = str(kitchen.folder / "scored.tsv")
    after = [run["after"][scored] for run in results["runs"] if run["plan"] == "plain"]
    assert results["rows"][2]["after"][scored] == pytest.approx(mean(after))
    assert results["rows"][2]["deviation"][scored] == pytest.approx(stdev(after))
    assert all(run["stages"][0]["outcome"]["steps"] == 3 for run in results["runs"][1:])
    assert sorted(str(path.relative_to(out / "models")) for path in (out / "models").glob("*/*")) == [
        "hot-0.5/seed-1",
        "hot-0.5/seed-2",
        "plain/seed-1",
        "plain/seed-2",
    ]
    for name, file in [("hot, 0.5", "hot-0.5"), ("plain", "plain"), ("base", "base")]:
        expected = read_recipe(recipe, ["seeds=[1, 2]", "simcse.steps=3"]).resolve(name)
        assert read_recipe(out / f"recipes/{file}.yaml").resolve() == expected
    made = files_of(out / "stages")
    done = sentloom(
        "lab", "train", recipe, "-o", out, "--variant", "plain", "--set", "seeds=[2]", "--set", "simcse.steps=3"
    )
    assert done.returncode == 0
    assert files_of(out / "stages") == made  # seed 2 of plain was done
    results = json.loads((out / "results.json").read_text())
    assert [(row["name"], row["seeds"]) for row in results["rows"]] == [("base", 1), ("hot, 0.5", 2), ("plain", 1)]
    assert "hot, 0.5" in done.stdout  # the table is that of the folder
    assert not (out / "model").exists()
    mine = results["runs"][-1]
    assert Encoder.load(out / "models/plain/seed-2").fingerprint() == mine["stages"][0]["fingerprint"]


def test_the_distance_is_from_the_base_as_it_is_which_is_shown(kitchen, sentloom):
    recipe, out = kitchen.recipe({"method": "simcse"}, pooling="max"), kitchen.folder / "out"
    done = sentloom("lab", "train", recipe, "-o", out)
    assert done.returncode == 0, done.stderr
    scored = str(kitchen.folder / "scored.tsv")
    as_it_is = find_evaluation_set(scored, None).score(Encoder.load(kitchen.base))
    with_max = find_evaluation_set(scored, None).score(Encoder.load(kitchen.base, pooling="max"))
    (row,) = json.loads((out / "results.json").read_text())["rows"]
    assert row["before"][scored] == pytest.approx(as_it_is)
    assert row["at_start"][scored] == pytest.approx(with_max)
    table = (out / "results.md").read_text()
    assert f"mean, untouched | {as_it_is:.2f} |" in table
    assert f"max, 32 tokens, untouched | {with_max:.2f} |" in table
    assert f"({row['after'][scored] - as_it_is:+.2f})" in table
    assert Encoder.load(out / "model").tokens.max_length == Encoder.load(kitchen.base).tokens.max_length


def test_what_is_not_ours_is_found_before_anything_is_trained(kitchen, sentloom):
    recipe, out = kitchen.recipe({"method": "simcse"}), kitchen.folder / "out"
    (out / "model").mkdir(parents=True)
    (out / "model/mine.txt").write_text("mine")
    for more in (["--dry-run"], []):
        done = sentloom("lab", "train", recipe, "-o", out, *more)
        assert done.returncode == 2
        assert "this is a folder without a model" in done.stderr
    assert not (out / "stages").exists()
    (out / "model/mine.txt").unlink()
    (out / "model").rmdir()
    (out / "results.md").write_text("my notes")
    assert sentloom("lab", "train", recipe, "-o", out).returncode == 2
    assert (out / "results.md").read_text() == "my notes"


def test_variants_whose_names_make_one_file_name_stay_apart(kitchen, sentloom):
    recipe = kitchen.recipe({"method": "simcse"}, variants={"x/y": {"simcse.steps": 1}, "x y": {"simcse.steps": 2}})
    done = sentloom("lab", "train", recipe, "-o", kitchen.folder / "out")
    assert done.returncode == 0, done.stderr
    assert len(list((kitchen.folder / "out/models").iterdir())) == 2
    assert len(list((kitchen.folder / "out/recipes").iterdir())) == 2


def test_a_fault_in_the_last_variant_shows_before_the_first_trains(kitchen, sentloom):
    variants = {"good": {}, "bad": {"simcse.data": "missing.txt"}}
    out = kitchen.folder / "out"
    done = sentloom("lab", "train", kitchen.recipe({"method": "simcse"}, variants=variants), "-o", out)
    assert done.returncode == 2
    assert "missing.txt" in done.stderr
    assert not (out / "stages").exists()
    too_large = {"good": {}, "bad": {"simcse.batch": 5000}}
    done = sentloom("lab", "train", kitchen.recipe({"method": "simcse"}, variants=too_large), "-o", out)
    assert done.returncode == 2
    assert not (out / "stages").exists()


LEARN = {"name": "learn", "method": "cross-lingual", "data": "pairs.tsv", "shape": "parallel", "queue": 0}


@pytest.mark.parametrize("change", [{"learn.source": "owner/nowhere"}, {"base": "owner/nowhere"}])
@pytest.mark.parametrize("method", ["cross-lingual", "mse-distillation"])
def test_a_model_that_is_not_there_is_found_before_the_first_variant_trains(kitchen, sentloom, change, method):
    stage = {name: value for name, value in LEARN.items() if name != "queue"} | {"method": method}
    recipe, out = kitchen.recipe(stage, variants={"good": {}, "bad": change}), kitchen.folder / "out"
    done = sentloom("lab", "train", recipe, "-o", out)
    assert done.returncode == 2
    assert "owner/nowhere" in done.stderr
    assert not (out / "stages").exists()


def test_a_variant_may_learn_from_a_model_that_the_one_before_leaves(kitchen, sentloom):
    out = kitchen.folder / "out"
    variants = {"first": {}, "second": {"learn.source": str(out / "models/first/seed-1")}}
    done = sentloom("lab", "train", kitchen.recipe(LEARN, variants=variants), "-o", out)
    assert done.returncode == 0, done.stderr
    assert len(kitchen.stages()) == 2


def test_a_dry_run_finds_what_only_the_second_stage_shows(kitchen, sentloom):
    stages = [{"method": "contrastive", "data": "pairs.tsv", "projection": 16}, {"method": "self-guided"}]
    done = sentloom("lab", "train", kitchen.recipe(*stages), "-o", kitchen.folder / "out", "--dry-run")
    assert done.returncode == 2
    assert "projection" in done.stderr
    entailment = {"method": "bootstrapped", "views": {"kind": "entailment"}}
    done = sentloom("lab", "train", kitchen.recipe(entailment), "-o", kitchen.folder / "out", "--dry-run")
    assert done.returncode == 2


def test_a_dry_run_writes_nothing(kitchen, sentloom):
    recipe, out = kitchen.recipe({"method": "mlm"}, {"method": "simcse", "accumulate": 2}), kitchen.folder / "out"
    done = sentloom("lab", "train", recipe, "-o", out, "--dry-run")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["mlm", "mlm", "texts", "24", "4", "4"] in [line[:6] for line in lines]
    assert ["simcse", "simcse", "texts", "24", "8", "4"] in [line[:6] for line in lines]
    assert not out.exists()


def test_two_runs_in_one_folder(kitchen, sentloom):
    recipe, out = kitchen.recipe({"method": "simcse"}), kitchen.folder / "out"
    with alone_in(out):
        done = sentloom("lab", "train", recipe, "-o", out)
        assert [path.name for path in out.iterdir()] == [".lock"]
    assert done.returncode == 2
    assert "another process is writing to it" in done.stderr
    assert sentloom("lab", "train", recipe, "-o", out).returncode == 0


BAD = {
    "a key": ({"method": "simcse", "temprature": 1}, {}, "temprature"),
    "a method": ({"method": "simsce"}, {}, "simsce"),
    "a data file": ({"method": "simcse", "data": "none.txt"}, {}, "none.txt"),
    "a base": ({"method": "simcse"}, {"base": "./none"}, "none"),
    "a set": ({"method": "simcse"}, {"evaluate": {"sets": ["none.tsv"]}}, "none.tsv"),
    "a batch beyond the data": ({"method": "simcse", "batch": 512}, {}, "fewer than one batch of 512"),
    "a shape": ({"method": "contrastive-bt"}, {}, "pairs, which contrastive-bt learns from"),
    "layers": ({"method": "self-guided", "layers": [9]}, {}, "layers from 0 to 3"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_ends_with_2_and_writes_nothing(what, kitchen, sentloom):
    stage, keys, said = BAD[what]
    out = kitchen.folder / "out"
    done = sentloom("lab", "train", kitchen.recipe(stage, **keys), "-o", out)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) >= 2
    assert "Traceback" not in done.stderr
    assert not out.exists()
    missing = sentloom("lab", "train", kitchen.folder / "none.yaml", "-o", kitchen.folder / "other")
    assert missing.returncode == 2
    assert not (kitchen.folder / "other").exists()


def test_an_unknown_variant(kitchen, sentloom):
    recipe = kitchen.recipe({"method": "simcse"}, variants={"plain": {}})
    done = sentloom("lab", "train", recipe, "-o", kitchen.folder / "out", "--variant", "plan")
    assert done.returncode == 2
    assert "plain" in done.stderr
    assert not (kitchen.folder / "out").exists()


def test_ctrl_c_says_how_to_go_on(kitchen, sentloom, monkeypatch):
    from sentloom.engine.stages import train

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train", interrupted)
    recipe, out = kitchen.recipe({"method": "simcse"}), kitchen.folder / "out"
    done = sentloom("lab", "train", recipe, "-o", out)
    assert done.returncode == 130
    assert "Run the same command again to resume" in done.stdout
    monkeypatch.undo()
    assert sentloom("lab", "train", recipe, "-o", out).returncode == 0
