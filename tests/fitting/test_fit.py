"""`sentloom fit` from end to end, on data of every shape."""

import json
import re
from itertools import pairwise

import pytest
from sentence_transformers import SentenceTransformer

from sentloom import fit
from sentloom.encoder import Encoder
from tests.fitting import small_base


def expect_written(done, result, output):
    assert done.returncode == 0, done.stdout + done.stderr
    assert result.verdict == "better"
    assert result.total.low > 0
    assert (output / "README.md").read_text("utf-8").startswith("---\n")
    assert SentenceTransformer(str(output)).encode(["bano"]).shape == (1, 32)
    folder = output.with_name("model.fit")
    for name in ("report.html", "report.md", "plan.json", "corpus.parquet"):
        assert (folder / name).stat().st_size > 0
    assert f"{result.total.after:.2f}" in done.stdout
    assert "report.html" in done.stdout
    assert done.stdout.splitlines()[-1] == result.verdict_line
    assert re.fullmatch(
        r"VERDICT better \+[\d.]+ .+ \[[\d.]+, [\d.]+\] level=95% clusters=\d+ effective=[\d.]+.* uses=1",
        result.verdict_line,
    )


def test_pairs(run, tmp_path):
    done, result, output = run(small_base.pairs(tmp_path / "faq.tsv"), budget="45steps")
    expect_written(done, result, output)
    assert {route.name for route in result.routes if route.tried} == {"pairs", "pairs with mined negatives"}
    assert [run.rung for run in result.runs if run.steps] == [1, 1, 2]
    first, second, longer = (run.steps for run in result.runs if run.steps)
    assert 10 <= first == second < longer
    assert f"continued a shorter run at step {first - 1}" in done.stdout  # which decays in its last step
    merged = [run.route for run in result.runs if not run.steps]
    assert [", merged with " in name for name in merged] == [True] * 5
    assert result.merging.route in merged
    assert result.merging.general_before > 0
    assert sum(run.verdict == "won" for run in result.runs) == 1
    (source,) = result.sources
    rows = source.rows
    assert rows.train + rows.validation + rows.test <= rows.read == 500
    assert rows.validation + rows.test >= 50
    assert result.neighbours
    assert result.histogram is not None
    assert "try pairs" in done.stdout
    assert result.total.metric == "ndcg@10"
    assert result.total.documents == result.total.of_documents == 500  # the whole corpus, not the held-out answers
    assert result.power.clusters == result.total.clusters >= 25
    assert "power to detect a gain of" in done.stdout
    assert result.won
    assert 0 < result.threshold.recall <= 1
    assert re.search(r"use number 1 of the set with SHA-256 \w{64}", (output / "README.md").read_text("utf-8"))


@pytest.mark.long
def test_triplets(run, tmp_path):
    expect_written(*run(small_base.triplets(tmp_path / "triplets.tsv")))


@pytest.mark.long
def test_translations(run, tmp_path):
    done, result, output = run(small_base.translations(tmp_path / "en-xx.tsv"), budget="100steps")
    expect_written(done, result, output)
    assert {route.name for route in result.routes} == {"cross-lingual", "mse-distillation"}


@pytest.mark.long
def test_raw_text_and_pairs_become_stages(run, tmp_path):
    done, result, output = run(
        small_base.prose(tmp_path / "raw.txt"), small_base.pairs(tmp_path / "faq.tsv"), budget="280steps"
    )
    expect_written(done, result, output)
    assert "simcse, then pairs" in {route.name for route in result.routes if route.tried}
    last = max(run.rung for run in result.runs)
    assert not any(run.verdict == "advanced" for run in result.runs if run.rung == last)
    trained = list((tmp_path / "model.fit" / "stages").glob("*/model"))
    assert {str(Encoder.load(model).pooling) for model in trained} == {"mean"}  # the base's, in both stages
    assert any(run.stages[0].startswith("simcse") and run.stages[1].startswith("contrastive") for run in result.runs)
    assert [measured.name for measured in result.measures if measured.part == "deciding"] == [str(tmp_path / "faq.tsv")]


@pytest.mark.long
def test_a_set_that_decides_and_its_sentences_are_not_learned_from(run, tmp_path, base):
    data = small_base.pairs(tmp_path / "faq.tsv")
    lines = data.read_text("utf-8").splitlines()
    asked = tmp_path / "asked.tsv"
    asked.write_text("\n".join([lines[0], *lines[-150:]]) + "\n", "utf-8")
    done, result, output = run(data, options=["--against", asked])
    expect_written(done, result, output)
    assert [measured.name for measured in result.measures if measured.part == "deciding"] == [str(asked)]
    assert [measured.name for measured in result.measures if measured.part == "watched"] == [str(data)]
    assert "150 rows with sentences of" in done.stdout
    (source,) = result.sources
    assert source.rows.train + source.rows.validation + source.rows.test == 350  # neither learned from nor chosen by


@pytest.mark.long
def test_the_same_from_python_and_again_without_training(base, tmp_path):
    data, told = small_base.pairs(tmp_path / "faq.tsv"), []
    first = fit(data, tmp_path / "model", base=str(base), budget="90steps")
    assert first.scores[str(data)].after > first.scores[str(data)].before
    assert first.model == tmp_path / "model"
    plan = (tmp_path / "model.fit" / "plan.json").read_bytes()
    again = fit(data, tmp_path / "model", base=str(base), budget="90steps", log=told.append)
    assert (tmp_path / "model.fit" / "plan.json").read_bytes() == plan
    assert any("Resuming the plan" in line for line in told)
    assert sum("done before" in line for line in told) == 4  # three runs, and the negatives of one
    assert not (tmp_path / "model.fit" / "trunks").exists()
    assert [run.score for run in again.result.runs] == [run.score for run in first.result.runs]
    assert (first.result.uses, again.result.uses) == (1, 1)  # the same model on the same rows


@pytest.mark.long
def test_another_budget_makes_another_plan(base, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv")
    first, other = (fit(data, tmp_path / "model", base=str(base), budget=budget) for budget in ("90steps", "99steps"))
    assert json.loads((tmp_path / "model.fit" / "plan.json").read_bytes())["inputs"]["budget"] == "99steps"
    assert other.result.runs[0].steps > first.result.runs[0].steps


@pytest.mark.long
def test_columns_are_named_and_inference_without_contradictions_is_taken_as_pairs(run, tmp_path):
    texts = small_base.sentences(300, 8)
    rows = [(text, small_base.other(text), "entailment") for text in texts]
    rows += [(text, small_base.other(two), "neutral") for text, two in pairwise(texts[:100])]
    data = small_base.write_rows(tmp_path / "odd.tsv", "this that so", rows)
    done, _, _ = run(data, budget="20steps")
    assert done.returncode == 2
    done, result, _ = run(data, budget="20steps", options=["--columns", "premise=this,hypothesis=that,label=so"])
    assert "only the entailments are used, as pairs" in done.stdout
    assert [route.name for route in result.routes if route.tried] == ["pairs"]
    assert result.sources[0].distinct == 300
    assert "--columns premise=this,hypothesis=that,label=so" in result.command
