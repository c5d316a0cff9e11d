"""The command `dedupe`."""

import csv
import json


def test_rows_that_mean_the_same_are_grouped(sentloom, embedded_encoder, tmp_path):
    texts = [
        "How do I reset my password?",
        "Where is the canteen?",
        "How can I reset my password?",
        "",
        "Where is the canteen?",
        "The invoice is wrong.",
        "",
    ]
    (tmp_path / "faq.csv").write_text("id,text\n" + "".join(f'{at},"{text}"\n' for at, text in enumerate(texts)))
    done = sentloom("dedupe", "embedded", tmp_path / "faq.csv", "-o", tmp_path / "groups.csv", "--threshold", "0.9")
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / "groups.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["group"], row["representative"]) for row in rows] == [
        ("0", "1", "True"),
        ("2", "1", "False"),
        ("1", "2", "True"),
        ("4", "2", "False"),
    ]
    assert all(0.9 <= float(row["cosine"]) <= 1.0001 for row in rows)
    assert "2 groups, 4 of 7 rows" in done.stdout
    assert not list(tmp_path.glob(".groups*"))


def test_no_duplicates_are_an_empty_file(sentloom, embedded_encoder, tmp_path):
    (tmp_path / "two.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in ("a dog", "tax law")))
    done = sentloom("dedupe", "embedded", tmp_path / "two.jsonl", "-o", tmp_path / "none.jsonl", "--threshold", "0.9")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "none.jsonl").read_text() == ""


def test_a_model_that_proved_no_threshold_says_so(sentloom, embedded_encoder, tmp_path):
    (tmp_path / "faq.csv").write_text("text\na\nb\n")
    done = sentloom("dedupe", "embedded", tmp_path / "faq.csv", "-o", tmp_path / "groups.csv")
    assert done.returncode == 2
    assert "--threshold 0.9" in done.stderr
    assert not (tmp_path / "groups.csv").exists()
