"""The scale tiny: every table has one, with the same rows, methods and options, but small models and few steps."""

import pytest
from accelerate import Accelerator

from sentloom.engine.needs import needs
from sentloom.errors import InputError
from sentloom.lab.domains import by_domain
from sentloom.lab.recipe import read_recipe, shipped
from sentloom.lab.reproduction import Table, run_table
from sentloom.lab.tiny import BATCH, STEPS, stand_in, tiny_recipe
from tests.writing.views.small_parts import build_wordnet

TABLES = {name: path for name, path in shipped().items() if "/" in name}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tiny")


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_all_its_rows_and_lacks_nothing(name, folder):
    whole, tiny = read_recipe(TABLES[name]), tiny_recipe(TABLES[name], folder, None)
    assert tiny.variants == whole.variants
    for variant in tiny.variants:
        plan, small = whole.resolve(variant), tiny.resolve(variant)
        assert [stage.method for stage in small.stages] == [stage.method for stage in plan.stages]
        assert small.published == plan.published
        assert small.evaluate.sets == plan.evaluate.sets
        assert (small.evaluate.fast, small.evaluate.hidden) == (True, 0)
        for run in by_domain(small).values() or [small]:
            assert needs(run) == []
        for stage in small.stages:
            if stage.settings is not None:
                assert (stage.settings.total_steps(1000), stage.settings.batch) <= (STEPS, BATCH)


def test_models_of_the_hub_have_a_stand_in():
    names = ("google-t5/t5-base@1f", "FacebookAI/roberta-large", "google-bert/bert-base-uncased")
    assert [stand_in(name) for name in names] == ["t5", "bert-large", "bert"]
    assert stand_in(names[2], deep=True) == "bert-deep"


def test_views_come_from_what_is_here(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("sentloom.writing.views.synonyms.candidates", lambda: [tmp_path / "wordnet"])

    def kinds():
        rows = ("NLI, back-translation", "Synonym", "MLM", "NLI entailment")
        return [tiny_recipe(TABLES["bsl/table-4"], folder, None).resolve(row).stages[0].options.kind for row in rows]

    assert kinds() == ["back-translation", "mask-fill", "mask-fill", "entailment"]
    build_wordnet(tmp_path / "wordnet")
    assert kinds()[1] == "synonyms"


def test_a_variable_without_a_tiny_value_is_refused(folder, tmp_path):
    (tmp_path / "own.yaml").write_text("base: ${MINE:-embedded}\nstages: []\n")
    with pytest.raises(InputError, match="MINE"):
        tiny_recipe(tmp_path / "own.yaml", folder, None)


# A sample of the rows: baselines and trained ones; `make recipes` runs all of them.
ROWS = {
    "bsl/table-1": ["Unigram-TFIDF", "GloVe avg."],
    "self-guided/figure-4": ["SG-OPT, STS-B", "Flow, STS-B"],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_run_from_end_to_end(name, folder, tmp_path):
    table = Table(tiny_recipe(TABLES[name], folder, None), tmp_path, Accelerator(cpu=True), lambda line: None)
    reproduction = run_table(table, ROWS[name])
    assert reproduction.not_run == {}
    for row in reproduction.rows.values():
        assert set(row.published) <= set(row.after)


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_every_table_runs(name, folder, tmp_path):
    tiny = tiny_recipe(TABLES[name], folder, None)
    reproduction = run_table(Table(tiny, tmp_path, Accelerator(cpu=True), lambda line: None))
    assert reproduction.not_run == {}
    assert set(reproduction.rows) == set(tiny.variants)
