"""A set that is not the published one: its scores are marked in every table, with the reason, and get no difference."""

import json
import random
import re

import pytest
import yaml

import sentloom as library
from tests.encoder.small_models import build_model_folder

WORDS = "dog cat house tree car river stone cloud bread music paper light green small large runs sleeps falls".split()
ROWS = {"STS16": 1186, "SICKR.test": 9927, **dict.fromkeys(("STS12", "STS13", "STS14", "STS15", "STSB.test"), 30)}
PARTIAL = "† STS-B: 30 rows, but 1,379 rows are published: not comparable with published scores"
JOINED = "† SICK-R: 9,927 pairs, but 4,927 are published"
MEAN = "† mean: without STS12, STS13, STS14, STS15, STS-B, SICK-R: not comparable with published scores"


def scored_pairs(path, rows):
    """Made-up pairs, of which some words are the same."""
    draw = random.Random(rows)
    lines = ["score\tsentence1\tsentence2"]
    for _ in range(rows):
        first, same = draw.sample(WORDS, 5), draw.randint(0, 5)
        lines.append(f"{same}\t{' '.join(first)}\t{' '.join([*first[:same], *draw.sample(WORDS, 5 - same)])}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("".join(f"{word} {at % 7} {at % 5} {at % 3} 1\n" for at, word in enumerate(WORDS)), "utf-8")
    return path


@pytest.fixture
def partial(tmp_path):
    """A data folder with 30 pairs of STS-B."""
    scored_pairs(tmp_path / "data/sts/STSB.test.tsv", 30)
    return tmp_path / "data"


@pytest.fixture
def recipe(tmp_path, partial, vectors):
    """A recipe that scores word vectors on the 30 pairs and on a file."""
    scored_pairs(tmp_path / "own.tsv", 30)
    evaluate = {"sets": ["STS-B", "own.tsv"], "data": str(partial), "mean": True}
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({"base": f"words:{vectors}", "stages": [], "evaluate": evaluate}))
    return path


def cells(markdown, row):
    """The cells of a table by column, in the first line with this label."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines() if "|" in line]
    return dict(zip(lines[0], next(line for line in lines if line[0] == row), strict=True))


def test_a_reproduced_table_marks_sets_that_are_not_the_published_ones(sentloom, tmp_path, vectors, monkeypatch):
    for name, rows in ROWS.items():
        scored_pairs(tmp_path / f"data/sts/{name}.tsv", rows)
    monkeypatch.setenv("GLOVE", str(vectors))
    options = ("--row", "GloVe avg.", "--data", tmp_path / "data", "-o", tmp_path / "out")
    done = sentloom("lab", "reproduce", "bsl/table-1", *options)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "out/bsl/table-1"
    markdown = (folder / "table.md").read_text("utf-8")
    measured, published, away = (cells(markdown, row) for row in ("GloVe avg.", "published", "difference"))
    assert published["STS-B"] == "58.02"
    assert float(away["STS16"]) == pytest.approx(float(measured["STS16"]) - float(published["STS16"]), abs=0.011)
    assert measured["mean"] == f"{measured['STS16']}†", "the others are left out of it"
    unlike = ["STS12", "STS13", "STS14", "STS15", "STS-B", "SICK-R", "mean"]
    assert [name for name, cell in measured.items() if cell.endswith("†")] == unlike
    assert [name for name, cell in away.items() if not cell] == unlike
    for text in (done.stdout, markdown):
        assert [text.count(reason) for reason in (PARTIAL, JOINED, MEAN)] == [1, 1, 1]
    row = json.loads((folder / "table.json").read_text("utf-8"))["rows"]["GloVe avg."]
    assert set(row["not_comparable"]) == set(unlike)
    assert "30 rows" in row["notes"]["STS-B"][0]


def test_a_table_at_the_scale_tiny_is_marked_too(sentloom, tmp_path, partial):
    options = ("--scale", "tiny", "--row", "max, layer 2", "--data", partial, "-o", tmp_path / "out")
    done = sentloom("lab", "reproduce", "self-guided/figure-1", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(PARTIAL) == 1
    markdown = (tmp_path / "out/self-guided/figure-1/table.md").read_text("utf-8")
    assert cells(markdown, "max, layer 2")["STS-B"].endswith("†")
    assert "difference" not in markdown


def test_the_tables_of_train_and_compare_are_marked(sentloom, tmp_path, recipe):
    mean = "† mean: without STS-B: not comparable with published scores"
    done = sentloom("lab", "train", recipe, "-o", tmp_path / "trained")
    assert done.returncode == 0, done.stderr
    markdown = (tmp_path / "trained/results.md").read_text("utf-8")
    for text in (done.stdout, markdown):
        assert (text.count(PARTIAL), text.count(mean)) == (1, 1)
    row = cells(markdown, "recipe")
    assert [name for name, cell in row.items() if cell.endswith("†")] == ["STS-B", "mean"]
    (own,) = (cell for name, cell in row.items() if name.endswith("own.tsv"))
    assert row["mean"].split()[0] == f"{own.split()[0]}†"
    assert json.loads((tmp_path / "trained/results.json").read_text())["rows"][0]["not_comparable"] == ["STS-B", "mean"]
    done = sentloom("lab", "compare", recipe, "-o", tmp_path / "compared", "--seeds", 1)
    assert done.returncode == 0, done.stderr
    markdown = (tmp_path / "compared/compare.md").read_text("utf-8")
    for text in (done.stdout, markdown):
        assert (text.count(PARTIAL), text.count(mean)) == (1, 1)
        assert text.count("†") == 4  # two scores and two notes
    (line,) = json.loads((tmp_path / "compared/compare.json").read_text("utf-8"))["lines"]
    assert [name for name, cell in line["cells"].items() if not cell["comparable"]] == ["STS-B", "mean"]


def test_evaluate_marks_scores_and_leaves_them_out_of_means(sentloom, tmp_path, vectors, partial):
    files = [tmp_path / f"scores.{ending}" for ending in ("json", "md")]
    command = ("evaluate", f"words=words:{vectors}", "--data", partial, "--unchecked")
    done = sentloom(*command, "-o", files[0], "-o", files[1])
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, files[1].read_text("utf-8")):
        assert text.count(PARTIAL) == 1
        assert "mean of the seven sets" not in text
        assert text.count("†") == 2
    (suite,) = json.loads(files[0].read_text("utf-8"))["suites"]
    assert suite["sets"][0]["cells"]["words"]["spearman"]["comparable"] is False
    assert suite["averages"] == []


def test_a_notebook_shows_the_mark_and_the_reason(tmp_path, vectors, partial):
    found = library.evaluate(f"words:{vectors}", "STS-B", data=partial, unchecked=True, cache_size=0)
    for text in (repr(found), found._repr_html_()):
        assert (text.count("†"), text.count(PARTIAL)) == (2, 1)


def test_own_files_have_no_published_scores_and_no_mark(sentloom, tmp_path, vectors):
    scored_pairs(tmp_path / "own.tsv", 30)
    done = sentloom("evaluate", f"words:{vectors}", "--suite", tmp_path / "own.tsv", "-o", tmp_path / "s.md")
    assert done.returncode == 0, done.stderr
    assert "†" not in done.stdout + (tmp_path / "s.md").read_text("utf-8")


def test_differences_between_models_are_marked_too(sentloom, tmp_path, vectors, partial):
    models = (f"words=words:{vectors}", "tf-idf")
    command = ("evaluate", *models, "--suite", "STS-B", "--data", partial, "--unchecked")
    done = sentloom(*command, "-o", tmp_path / "scores.md")
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, (tmp_path / "scores.md").read_text("utf-8")):
        assert re.search(r"STS-B[ |]+[+-][\d.]+† \([+-]", text)


def test_a_set_of_the_wrong_size_is_left_out_like_one_that_is_missing(sentloom, tmp_path, vectors, partial):
    scored_pairs(tmp_path / "own.tsv", 30)
    suites = ("--suite", "STS-B", "--suite", tmp_path / "own.tsv", "--data", partial)
    done = sentloom("evaluate", f"words:{vectors}", *suites, "-o", tmp_path / "scores.json")
    assert done.returncode == 4, done.stderr
    shown = " ".join(done.stdout.split())
    assert (
        "STS-B: not the published set, left out (there are 30 rows instead of 1,379 rows, as published: download"
        in shown
    )
    assert "`evaluate` with --unchecked scores it anyway" in shown
    assert "not scored: STS-B" in shown
    first, second = json.loads((tmp_path / "scores.json").read_text("utf-8"))["suites"]
    assert (len(first["sets"]), len(second["sets"])) == (0, 1)
    done = sentloom("evaluate", f"words:{vectors}", *suites[:2], *suites[4:], "-o", tmp_path / "none.json")
    assert done.returncode == 2  # nothing else is left to score
    assert "Expected 1,379 rows, as published" in " ".join(done.stderr.split())


def test_fit_advises_no_option_that_it_does_not_have(sentloom, tmp_path, partial):
    rows = [f"how much is ticket {n}?\tticket {n} costs {3 * n} euros" for n in range(120)]
    (tmp_path / "faq.tsv").write_text("question\tanswer\n" + "\n".join(rows) + "\n", "utf-8")
    base = build_model_folder("bert", tmp_path / "bert")
    done = sentloom("fit", tmp_path / "faq.tsv", "-o", tmp_path / "m", "--general", partial, "--base", base)
    assert done.returncode == 2
    assert "`evaluate` with --unchecked scores it anyway" in " ".join(done.stderr.split())
