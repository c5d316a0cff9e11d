"""A fit on labels: the classifier that comes with it, and what `predict` does with it."""

import csv
import json
import random

import pytest
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer

from sentloom import fit
from sentloom.classify.classifier import load
from tests.fitting import small_base

FIRST = ("red", "green", "blue", "grey")  # the labels: a text has the one that its first word stands for


def labelled(count, seed, labels=FIRST):
    """Texts whose first words say the label."""
    by_label = {label: small_base.WORDS[at * 10 : at * 10 + 2] for at, label in enumerate(labels)}
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        label = labels[number % len(labels)]
        words = [draw.choice(by_label[label]), *draw.sample(small_base.WORDS[45:], 3)]
        rows.append((" ".join([*words, draw.choice(by_label[label])]), label))
    return list(dict.fromkeys(rows))


def write(path, rows):
    return small_base.write_rows(path, "text label", rows)


@pytest.fixture(scope="module")
def few(base, tmp_path_factory):
    """A fit to eight texts of each label."""
    folder = tmp_path_factory.mktemp("few")
    data = write(folder / "few.tsv", labelled(32, 1))
    return fit(data, folder / "model", base=base, budget="60steps", log=lambda line: None)


def test_eight_texts_of_each_label_are_enough(few):
    (summary,), (source,) = few.result.classifiers, few.result.sources
    assert (source.rows.train, source.rows.test) == (32, 0)  # nothing is held out
    assert summary.proven_on == "4 folds of the training rows"
    assert few.verdict == "no difference shown"  # which so few rows cannot prove
    assert not few.result.forced
    assert "have also chosen it" in few.report.with_suffix(".md").read_text("utf-8")
    texts, labels = zip(*labelled(60, 2), strict=True)
    right = [said.label == label for said, label in zip(few.predict(texts), labels, strict=True)]
    assert sum(right) / len(right) > 0.8


def test_sentence_transformers_loads_a_model_with_a_classifier(few):
    assert SentenceTransformer(str(few.model)).encode(["a"]).shape == (1, 32)


def test_many_texts_are_proven_on_test_rows(run, tmp_path):
    rows = labelled(400, 3)
    done, result, model = run(write(tmp_path / "many.tsv", rows), budget="20steps")
    assert done.returncode == 0, done.stdout + done.stderr
    (summary,) = result.classifiers
    assert summary.proven_on == "the test rows"
    assert summary.proof.texts == result.sources[0].rows.test
    assert summary.proof.agreement.low <= summary.proof.agreement.value <= summary.proof.agreement.high
    assert summary.rows == len(rows)
    (classifier,) = load(model)
    assert len(classifier.rows) == len(rows)  # it learns from all of them after the proof
    page = (tmp_path / "model.fit" / "report.html").read_text("utf-8")
    assert "<h2>Classifier</h2>" in page
    assert "What is confused" in page


def test_predict_keeps_rows_and_their_order(few, sentloom, tmp_path):
    asked = labelled(20, 5)
    lines = [
        "id,text,note",
        *(f'{number},{text},"a, b"' for number, (text, _) in enumerate(asked)),
        '98,"",empty',
        f"99,{asked[0][0]},twice",
    ]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    done = sentloom("predict", few.model, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "text", "note", "label", "probability", "abstain"]
    assert [row["id"] for row in rows] == [*map(str, range(len(asked))), "98", "99"]
    assert {row["note"] for row in rows[:20]} == {"a, b"}
    assert all(row["label"] in FIRST for row in rows)
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)
    assert rows[-2]["abstain"] == "True"  # there is nothing to go by
    assert rows[-1]["label"] == rows[0]["label"]


def test_predict_learns_a_new_label_from_examples(few, sentloom, tmp_path):
    five = (*FIRST, "white")
    fresh = [(text, label) for text, label in labelled(80, 7, five) if label == "white"]
    write(tmp_path / "examples.tsv", fresh[:5])
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text, _ in fresh[5:]))
    done = sentloom(
        "predict",
        few.model,
        tmp_path / "new.jsonl",
        "-o",
        tmp_path / "out.jsonl",
        "--examples",
        tmp_path / "examples.tsv",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [json.loads(line)["label"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert said.count("white") / len(said) > 0.7


def test_several_labels_and_several_columns(run, sentloom, tmp_path):
    texts = [text for text, _ in labelled(120, 8)]
    draw = random.Random(0)
    rows = []
    for text, (_, colour) in zip(texts, labelled(120, 8), strict=True):
        size = draw.choice(["large", "small"])
        word = small_base.WORDS[40 if size == "large" else 41]
        rows.append((f"{word} {text} {word}", f"{colour}|{size}", size))
    data = small_base.write_rows(tmp_path / "two.tsv", "text tags size", rows)
    done, _, model = run(data, budget="10steps", options=("--columns", "text=text,label=tags+size"))
    assert done.returncode == 0, done.stdout + done.stderr
    tags, size = load(model)
    assert (tags.column, tags.several, size.column, size.several) == ("tags", True, "size", False)
    assert set(tags.labels) == {*FIRST, "large", "small"}
    (tmp_path / "new.csv").write_text("text\n" + rows[0][0] + "\n")
    done = sentloom("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    header, row = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "text,tags,tags_probability,tags_abstain,size,size_probability,size_abstain"
    assert row.split(",")[1]


def test_a_base_that_training_does_not_improve_is_written_with_a_classifier(run, base, tmp_path):
    rows = labelled(300, 9)
    draw = random.Random(1)
    noise = [(text, draw.choice(FIRST[:2])) for text, _ in rows]  # labels that mean nothing
    done, result, model = run(write(tmp_path / "noise.tsv", noise), budget="10steps")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not result.classifiers[0].fitted
    assert result.verdict != "better"
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (model, base))
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    assert "unchanged, with a classifier" in (model / "README.md").read_text("utf-8")


def test_a_model_without_a_classifier_says_what_to_do(sentloom, base, tmp_path):
    (tmp_path / "new.csv").write_text("text\na b\n")
    done = sentloom("predict", base, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.returncode == 2
    assert "the model has no classifier" in done.stderr
    assert not (tmp_path / "out.csv").exists()
