"""After a fit that wrote no model, every command that takes a model says so, and why."""

import json
import random

import pytest
import yaml

WORDS = "dog cat house tree car river stone cloud bread music paper light green small large runs sleeps falls".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fit's folder without its model, as `fit` leaves it behind with exit code 3; the last test makes a real one."""
    folder = tmp_path_factory.mktemp("fit")
    (folder / "faq.fit").mkdir()
    facts = {"verdict": "no difference shown", "reason": "Its interval reaches from -1.20 to +2.10.", "model": None}
    (folder / "faq.fit/report.json").write_text(json.dumps(facts), "utf-8")
    (folder / "texts.txt").write_text("A dog runs.\nA cat sleeps.\n", "utf-8")
    rows = [f"Where is the dog number {number}?\tIn the house number {number}." for number in range(80)]
    (folder / "pairs.tsv").write_text("\n".join(["anchor\tpositive", *rows]) + "\n", "utf-8")
    stage = {"name": "s", "method": "simcse", "data": "texts.txt", "batch": 2, "steps": 1}
    (folder / "recipe.yaml").write_text(yaml.safe_dump({"base": str(folder / "faq"), "stages": [stage]}), "utf-8")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "faq", "where is the dog?"),
        ("search", "./faq", "where is the dog?"),
        ("search", "texts.txt", "where?", "--model", "faq"),
        ("encode", "texts.txt", "--model", "faq", "-o", "vectors.npy"),
        ("serve", "faq"),
        ("serve", "name=faq"),
        ("evaluate", "faq", "--suite", "pairs.tsv"),
        ("evaluate", "whitening:faq", "--suite", "pairs.tsv"),
        ("export", "faq", "--to", "onnx", "-o", "exported"),
        ("shrink", "faq", "texts.txt", "-o", "small"),
        ("lab", "geometry", "faq", "--pairs", "pairs.tsv", "-o", "geometry"),
        ("lab", "mine", "pairs.tsv", "--model", "faq", "-o", "mined.tsv"),
        ("fit", "pairs.tsv", "-o", "other", "--base", "faq"),
        ("lab", "train", "recipe.yaml", "-o", "trained"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_the_verdict_of_the_fit_is_the_reason(sentloom, folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    done = sentloom(*arguments)
    said = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert "this fit wrote no model; its verdict is: no difference shown. Its interval reaches from -1.20 to" in said
    assert "faq.fit/report.html" in said
    assert "--force" in said
    assert "hub" not in said


def test_a_fit_that_has_not_ended_and_a_model_that_is_gone(sentloom, tmp_path):
    (tmp_path / "model.fit").mkdir()
    done = sentloom("search", tmp_path / "model", "where?")
    assert (done.returncode, "has not come to its end" in done.stderr) == (2, True)
    (tmp_path / "model.fit/report.json").write_text('{"model": "model", "verdict": "better"}')
    done = sentloom("search", tmp_path / "model", "where?")
    assert (done.returncode, "it is no longer here" in done.stderr) == (2, True)
    (tmp_path / "model.fit/report.json").write_text("{")
    done = sentloom("search", tmp_path / "model", "where?")
    assert (done.returncode, "the JSON is unreadable" in done.stderr) == (2, True)


@pytest.mark.long
def test_after_a_real_fit(sentloom, tmp_path):
    draw = random.Random(3)
    rows = [" ".join(draw.sample(WORDS, 6)) for _ in range(150)]
    lines = [f"{row}\t{' '.join(draw.sample(row.split(), 5))} {number}" for number, row in enumerate(rows)]
    (tmp_path / "faq.tsv").write_text("\n".join(["question\tanswer", *lines]) + "\n", "utf-8")
    small = ("--vocabulary", 80, "--layers", 1, "--width", 32)
    assert sentloom("lab", "init-model", tmp_path / "faq.tsv", "-o", tmp_path / "base", *small).returncode == 0
    fitted = ("fit", tmp_path / "faq.tsv", "-o", tmp_path / "faq", "--base", tmp_path / "base", "--writer", "none")
    done = sentloom(*fitted, "--budget", "2steps")
    assert done.returncode == 3, done.stderr
    verdict = json.loads((tmp_path / "faq.fit/report.json").read_text("utf-8"))["verdict"]
    done = sentloom("search", tmp_path / "faq", "where is the dog?")
    assert done.returncode == 2
    assert f"this fit wrote no model; its verdict is: {verdict}" in done.stderr
    assert (tmp_path / "faq.fit/report.html").is_file()
