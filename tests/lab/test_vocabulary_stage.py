"""A stage with a vocabulary: its encoder learns the pieces of the data first."""

from sentloom.encoder import Encoder
from sentloom.engine.plan import to_yaml
from sentloom.engine.runner import start_accelerator
from sentloom.lab.forecast import forecast
from sentloom.lab.recipe import read_recipe

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
    assert {name.rsplit("-", 1)[0] for name in kitchen.stages()} == {"cross-lingual", "cross-lingual-vocabulary"}
    assert len(kitchen.stages()) == 3
    vocabulary, trained = taught.stages
    assert trained["input"] == vocabulary["fingerprint"] != plain.stages[0]["input"]


def test_a_recipe_keeps_it_and_a_forecast_bears_it(kitchen, tmp_path):
    write_pairs(kitchen)
    plan = read_recipe(kitchen.recipe(STAGE)).resolve()
    vocabulary, trained = plan.stages
    assert (vocabulary.options.size, vocabulary.data, trained.data) == (150, trained.data, vocabulary.data)
    (tmp_path / "whole.yaml").write_text(to_yaml(plan))
    assert read_recipe(tmp_path / "whole.yaml").resolve() == plan
    rows = forecast(plan, start_accelerator((), tmp_path))
    assert [row.rows for row in rows] == [40, 40]
