"""A stage with a vocabulary: its encoder learns the pieces of the data first."""

from sentloom.encoder import Encoder
from sentloom.pipeline.forecast import forecast
from sentloom.pipeline.plan import to_yaml
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.runner import start_accelerator

WORDS = ["straßenbahnhaltestelle", "wasserversorgung", "bundesregierung", "krankenhausgesellschaft"]


def write_pairs(kitchen):
    rows = [f"A sentence, number {i}.\tDie {WORDS[i % 4]} und die {WORDS[(i + 1) % 4]} Nummer {i}." for i in range(40)]
    (kitchen.folder / "german.tsv").write_text("\n".join(["source\ttarget", *rows]) + "\n", encoding="utf-8")


STAGE = {"method": "cross-lingual", "data": "german.tsv", "queue": 0, "vocabulary": 150}


def test_new_pieces_stay_with_the_model_and_change_the_stages_key(kitchen):
    write_pairs(kitchen)
    plain = kitchen.run({**STAGE, "vocabulary": None})[0]
    taught = kitchen.run(STAGE)[0]
    before, after = (Encoder.load(result.model).tokens for result in (plain, taught))
    assert sum(map(len, after.bare(WORDS))) < sum(map(len, before.bare(WORDS)))
    assert len(kitchen.stages()) == 2
    assert not list(kitchen.folder.glob("out/stages/*/start"))  # what it started from is not kept


def test_a_recipe_keeps_it_and_a_forecast_bears_it(kitchen, tmp_path):
    write_pairs(kitchen)
    plan = read_recipe(kitchen.recipe(STAGE)).resolve()
    assert plan.stages[0].vocabulary == 150
    assert "vocabulary: 150" in to_yaml(plan)
    (row,) = forecast(plan, tmp_path, start_accelerator((), tmp_path))
    assert row.rows == 40
