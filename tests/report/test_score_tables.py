"""Score tables show the scores, their marks, and the papers' rows."""

from sentloom.evaluation.results import AverageResult, Cell, SetResult, SuiteResult
from sentloom.lab.published import published, with_published
from sentloom.report import score_tables
from tests.report.printing import printed

DIFFERENT = {"difference": 1.0, "difference_low": -1.0, "difference_high": 3.0}


def result(models):
    cells = {
        name: {"spearman": Cell(80.0 + place, 79.0, 82.0, p=0.3 if place else None, **DIFFERENT)}
        for place, name in enumerate(models)
    }
    one = SetResult("STS-B", "spearman", 1379, cells, "", "", {}, ())
    average = AverageResult("mean of the seven sets: 1 of 7", {name: some["spearman"] for name, some in cells.items()})
    return SuiteResult("sts", (one,), (average,), {"STS12": "no file"})


def test_one_model_has_its_interval_beside_the_score():
    text = printed(score_tables.suite(result(["a"]), ["a"]), 80)
    assert "80.00 (79.0 to 82.0)" in text
    assert "note: STS12: missing, left out (no file)" in text
    assert "≈" not in text


def test_what_is_not_significant_is_marked_and_the_mark_explained():
    text = printed(score_tables.suite(result("ab"), ["a", "b"]), 80)
    assert "≈ 81.00" in text
    assert "≈: no significant difference" in text


def test_many_models_go_below_each_other():
    text = printed(score_tables.suite(result("abcd"), list("abcd")), 80)
    assert [line.split()[0] for line in text.splitlines() if line.strip()[:1] in "abcd" and "8" in line] == list("abcd")


def test_published_rows_stand_beneath_with_source_and_faults():
    rows = published("sts")
    text = printed(with_published(result(["a"]), ["a"]))
    assert all(f"({number}) {row.label}" in text for number, row in enumerate(rows, start=1))
    assert sum(line.startswith("fault of") for line in text.splitlines()) == len(
        {f for row in rows for f in row.faults}
    )
    head = next(line for line in text.splitlines() if "STS12" in line)
    assert head.split()[:8] == ["model", "STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
    assert head.rstrip().endswith("1 of 7")


def test_a_single_set_has_no_published_rows():
    one = result(["a"])
    assert "no published scores" in printed(with_published(SuiteResult("STS-B", one.sets, (), {}), ["a"]))


def wide(models):
    """Nine sets with long names, of which no terminal of 80 columns has room for all."""
    cells = {
        model: {"spearman": Cell(80.25 + place, 79.0, 82.0, p=0.3, **DIFFERENT)} for place, model in enumerate(models)
    }
    sets = tuple(SetResult(f"Set{n} es-en-wmt", "spearman", 9, cells, "", "", {}, ()) for n in range(9))
    means = tuple(AverageResult(label, {m: c["spearman"] for m, c in cells.items()}) for label in ("five", "four"))
    return SuiteResult("own", sets, means, {})


def test_a_narrow_terminal_cuts_no_number_and_no_model():
    models = ["a-model-with-a-long-name", "b", "c", "d"]
    text = printed(score_tables.suite(wide(models), models), 80)
    for place, model in enumerate(models):
        own = " ".join(line for line in text.splitlines() if line.split()[:1] == [model])
        assert own.split().count(f"{80.25 + place:.2f}") == 9 + 2
    assert all(f"Set{n}" in text for n in range(9))
    assert "five" in text
    assert "four" in text
    assert max(map(len, text.splitlines())) <= 80


def test_many_models_have_marks_and_no_word_of_intervals_that_are_not_shown():
    text = printed(score_tables.suite(result("abcd"), list("abcd")), 80)
    assert "≈ 81.00" in text
    assert "95% interval over items" not in text
    assert "≈: no significant difference" in text


def test_a_mark_of_a_mean_alone_is_explained():
    sure = {
        name: {"spearman": Cell(80.0, 79.0, 82.0, p=0.001, **(DIFFERENT | {"difference_low": 0.5}))} for name in "ab"
    }
    one = SetResult("STS-B", "spearman", 1379, sure, "", "", {}, ())
    mean = AverageResult("mean", {"a": Cell(80.0, 79.0, 82.0), "b": Cell(81.0, 79.0, 82.0, p=0.3, **DIFFERENT)})
    text = printed(score_tables.suite(SuiteResult("sts", (one,), (mean,), {}), ["a", "b"]), 80)
    assert "≈ 81.00" in text
    assert "≈: no significant difference" in text


def test_seeds_are_said_not_to_be_tested():
    cells = {"a": {"spearman": Cell(80.0, 79.0, 82.0)}, "b": {"spearman": Cell(81.0, deviation=0.5, difference=1.0)}}
    one = SetResult("STS-B", "spearman", 1379, cells, "", "", {}, ())
    assert "not tested" in printed(score_tables.suite(SuiteResult("STS-B", (one,), (), {}), ["a", "b"]), 80)
