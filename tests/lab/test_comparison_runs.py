"""Methods against each other: which plans there are and what they are called; runs that are kept; one table."""

import csv
import json
from statistics import mean, stdev

import pytest
from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.engine.evaluation_sets import find_evaluation_set
from sentloom.errors import InputError, RecipeError, TrainingStopped
from sentloom.lab.comparison import compare_plans, comparison_table, read_methods
from sentloom.lab.comparison_tables import refuse_foreign_tables, write_comparison
from sentloom.lab.recipe import read_recipe
from tests.encoder.small_models import build_model_folder
from tests.engine.small_recipes import Kitchen


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def kitchen(tmp_path, bert, one_thread):
    return Kitchen(tmp_path, bert)


def methods(*paths, **options):
    return read_methods(list(map(str, paths)), **options)


def run(kitchen, plans, told=None):
    log = told.append if told is not None else lambda text: None
    folder = kitchen.folder / "out"
    refuse_foreign_tables(folder)
    return compare_plans(plans, folder, Accelerator(cpu=True), log, lambda compared: write_comparison(compared, folder))


def test_every_recipe_and_every_variant_under_the_same_seeds(kitchen):
    first = kitchen.recipe("one", {"method": "simcse"}, seeds=[7])
    second = kitchen.recipe("two", {"method": "mlm"}, variants={"short": {"mlm.steps": 1}, "long": {}})
    plans = methods(first, second)
    assert [plan.name for plan in plans] == ["one", "two: short", "two: long"]
    assert {plan.seeds for plan in plans} == {(1, 2, 3)}
    assert methods(first, seeds=2)[0].seeds == (1, 2)
    assert methods(first, changes=["seeds=[5]"])[0].seeds == (5,)


def test_one_recipe_alone_needs_no_name_before_its_variants(kitchen):
    path = kitchen.recipe("two", {"method": "mlm"}, variants={"short": {"mlm.steps": 1}, "long": {}})
    plans = methods(path)
    assert [plan.name for plan in plans] == ["short", "long"]
    assert plans[0].stages == read_recipe(path).resolve("short").stages


def test_recipes_of_the_same_name_are_told_apart_by_their_folders(kitchen):
    paths = [kitchen.recipe(f"{folder}/r", {"method": "simcse", "data": "t"}) for folder in "ab"]
    assert [plan.name for plan in methods(*paths)] == list(map(str, paths))
    with pytest.raises(InputError, match="twice"):
        methods(paths[0], paths[0])


def test_a_change_that_names_a_stage_leaves_recipes_without_it_alone(kitchen):
    first = kitchen.recipe("one", {"method": "simcse"})
    second = kitchen.recipe("two", {"method": "mlm"})
    plans = methods(first, second, changes=["simcse.steps=9", "max_length=16"])
    assert [plan.stages[0].settings.steps for plan in plans] == [9, 4]
    assert [plan.max_length for plan in plans] == [16, 16]
    with pytest.raises(RecipeError, match="simsce"):
        methods(first, second, changes=["simsce.steps=9"])


def test_variants_are_chosen_by_name_and_recipes_without_any_stay(kitchen):
    first = kitchen.recipe("one", {"method": "simcse"})
    second = kitchen.recipe("two", {"method": "mlm"}, variants={"short": {"mlm.steps": 1}, "long": {}})
    assert [plan.name for plan in methods(first, second, variants=["long"])] == ["one", "two: long"]
    with pytest.raises(InputError, match="did you mean"):
        methods(first, second, variants=["lang"])
    third = kitchen.recipe("three", {"method": "mlm"}, variants={"other": {}})
    with pytest.raises(InputError, match="none of the variants long"):
        methods(second, third, variants=["long"])


def test_common_sets_go_over_those_of_the_recipes(kitchen, monkeypatch):
    first = kitchen.recipe("one", {"method": "simcse"}, evaluate=None)
    second = kitchen.recipe("two", {"method": "mlm"}, evaluate={"sets": ["scored.tsv"], "data": "${NOT_SET}"})
    monkeypatch.chdir(kitchen.folder)
    plans = methods(first, second, on=["faq.tsv", "sts-b"], data=kitchen.folder)
    for plan in plans:
        assert plan.evaluate.sets == (kitchen.set("faq.tsv"), "sts-b")
        assert plan.evaluate.data == str(kitchen.folder)
        assert plan.evaluate.mean
    assert not methods(first, on=["faq.tsv"])[0].evaluate.mean


def test_what_is_scored_on_nothing_is_refused(kitchen):
    with pytest.raises(InputError, match="on='SET'"):
        methods(kitchen.recipe("one", {"method": "simcse"}, evaluate=None))


def test_a_wrong_name():
    with pytest.raises(InputError, match="no built-in recipe"):
        methods("self-guided-sts")


@pytest.mark.long
def test_three_methods_two_seeds_then_again(kitchen):
    paths = [kitchen.recipe(name, {"method": name}) for name in ("simcse", "mlm")]
    paths.append(kitchen.recipe("both", {"method": "mlm"}, {"method": "simcse"}))
    compared = run(kitchen, methods(*paths, seeds=2))
    base, *lines = (
        comparison_table(compared).lines[:1] + comparison_table(compared).lines[2:]
    )  # the second is the base with the first token
    name = kitchen.set("scored.tsv")
    assert [line.name for line in lines] == ["simcse", "mlm", "both"]
    assert [line.cost.steps for line in lines] == [4, 4, 8]
    assert base.cells[name].score == pytest.approx(find_evaluation_set(name, None).score(Encoder.load(kitchen.base)))
    for line in lines:
        models = [run_of.model for run_of in compared.results if run_of.plan == line.name]
        scores = [find_evaluation_set(name, None).score(Encoder.load(model)) for model in models]
        assert len(scores) == 2
        assert line.cells[name].score == pytest.approx(mean(scores))
        assert line.cells[name].deviation == pytest.approx(stdev(scores))
        assert line.cells[name].change == pytest.approx(mean(scores) - base.cells[name].score)
    # mlm is the first stage of both: two seeds of three stages, not of four
    assert len(list((kitchen.folder / "out/stages").iterdir())) == 6

    files = {path: path.read_bytes() for path in (kitchen.folder / "out").glob("compare.*")}
    assert {path.name for path in files} == {"compare.json", "compare.md", "compare.csv"}
    written = json.loads((kitchen.folder / "out/compare.json").read_text())
    assert [line["name"] for line in written["lines"][2:]] == ["simcse", "mlm", "both"]
    with (kitchen.folder / "out/compare.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 5
    told = []
    again = run(kitchen, methods(*paths, seeds=2), told)
    assert again == compared
    assert {path: path.read_bytes() for path in files} == files
    assert sum("done before" in line for line in told) == 8
    more = run(kitchen, methods(paths[0], seeds=3))
    assert comparison_table(more).lines[-1].cost.seeds == 3
    assert len(list((kitchen.folder / "out/stages").iterdir())) == 7  # one seed more of one stage


def test_other_sets_make_a_union_with_blanks(kitchen):
    first = kitchen.recipe("one", {"method": "simcse"})
    second = kitchen.recipe("two", {"method": "simcse", "temperature": 0.5}, evaluate={"sets": ["faq.tsv"]})
    plain = kitchen.recipe("plain", evaluate={"sets": ["scored.tsv", "faq.tsv"]})
    table = comparison_table(run(kitchen, methods(first, second, plain, seeds=1)))
    scored, faq = kitchen.set("scored.tsv"), kitchen.set("faq.tsv")
    assert table.sets == (scored, faq)
    cells = {line.name: set(line.cells) for line in table.lines if not line.is_base}
    assert cells == {"one": {scored}, "two": {faq}, "plain": {scored, faq}}
    assert all(set(line.cells) == {scored, faq} for line in table.lines if line.is_base)


def test_a_fault_in_the_last_shows_before_the_first_trains(kitchen):
    good = kitchen.recipe("good", {"method": "simcse"})
    bad = kitchen.recipe("bad", {"method": "simcse", "batch": 5000})
    with pytest.raises(InputError, match="fewer than one batch of 5000"):
        run(kitchen, methods(good, bad))
    assert not (kitchen.folder / "out/stages").exists()


def test_a_name_that_means_two_sets_is_refused(kitchen):
    for folder, last in (("x", "A cat."), ("y", "A dog.")):
        (kitchen.folder / folder / "sts").mkdir(parents=True)
        rows = ["score\tsentence1\tsentence2\tsubset", "5\tOne.\tTwo.\ts", f"1\tThree.\t{last}\ts"]
        (kitchen.folder / folder / "sts/STSB.test.tsv").write_text("\n".join(rows) + "\n")
    x, y = (kitchen.recipe(f"in-{folder}", evaluate={"sets": ["sts-b"], "data": folder}) for folder in "xy")
    with pytest.raises(InputError, match="in-x than in in-y"):
        run(kitchen, methods(x, y))
    assert comparison_table(run(kitchen, methods(x, y, data=kitchen.folder / "x"))).sets == ("sts-b",)


def test_a_method_whose_numbers_break_leaves_the_others_their_table(kitchen):
    breaks = kitchen.recipe("breaks", {"method": "simcse", "learning_rate": 1e38, "steps": 20})
    good = kitchen.recipe("good", {"method": "simcse"})
    compared = run(kitchen, methods(breaks, good, seeds=1))
    assert [line.name for line in comparison_table(compared).lines if not line.is_base] == ["good"]
    assert list(compared.failed) == ["breaks"]
    assert any("not in the table: breaks" in note for note in comparison_table(compared).notes)
    assert "not in the table: breaks" in (kitchen.folder / "out/compare.md").read_text()
    with pytest.raises(TrainingStopped):
        run(kitchen, methods(breaks, seeds=1))


def test_a_file_of_anothers_making_is_not_replaced(kitchen):
    (kitchen.folder / "out").mkdir()
    (kitchen.folder / "out/compare.md").write_text("my notes")
    with pytest.raises(InputError, match="not written by sentloom"):
        run(kitchen, methods(kitchen.recipe("plain")))
    assert (kitchen.folder / "out/compare.md").read_text() == "my notes"
