"""Small fits of data that is harder than it looks: many and rare labels, scales, known positives, titles, negatives."""

import json
import random
from itertools import pairwise

import pytest

from tests.fitting import small_base


def records(folder):
    """What each training stage wrote, by the method that it ran."""
    results = [json.loads(path.read_text("utf-8")) for path in (folder / "model.fit" / "stages").glob("*/result.json")]
    return [result for result in results if "outcome" in result]


@pytest.mark.long
def test_two_thousand_labels_most_with_two_rows_and_many_with_one(run, tmp_path):
    texts = small_base.sentences(2000, 11)
    rows = [(text, f"label {n}") for n, text in enumerate(texts)]
    rows += [(small_base.other(text), f"label {n}") for n, text in enumerate(texts[:1500])]
    done, result, _ = run(small_base.write_rows(tmp_path / "many.tsv", "text label", rows), budget="12steps")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert [route.name for route in result.routes if route.tried] == ["labels"]
    (score,) = (measured for measured in result.measures if measured.part == "deciding")
    assert score.metric == "accuracy"
    assert set(score.also) == {"map"}  # a probe of that many labels would take minutes
    assert 100 < score.items < 1000  # held-out texts with a label that no training row has are not asked


@pytest.mark.long
def test_a_rare_label_and_one_with_a_single_row(run, tmp_path):
    texts = small_base.sentences(400, 12)
    rows = [(text, "common") for text in texts[:350]] + [(text, "rare") for text in texts[350:360]]
    rows += [(texts[360], "single"), *((text, "other") for text in texts[361:])]
    done, result, _ = run(small_base.write_rows(tmp_path / "rare.tsv", "text label", rows), budget="10steps")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert result.runs[0].score is not None


@pytest.mark.parametrize(
    "scale", [pytest.param((0, 1), marks=pytest.mark.long), pytest.param((1, 5), marks=pytest.mark.long), (-1.0, 1.0)]
)
def test_scored_pairs_on_any_scale(run, tmp_path, scale):
    low, high = scale
    texts = small_base.sentences(300, 13)
    rows = [(text, small_base.other(text), str(high)) for text in texts[:150]]
    rows += [(text, small_base.other(two), str(low)) for text, two in pairwise(texts[150:])]
    done, result, _ = run(
        small_base.write_rows(tmp_path / "s.tsv", "sentence1 sentence2 score", rows), budget="50steps"
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert {route.name for route in result.routes if route.tried} == {"scores", "scores with angles"}
    assert all(run.score is not None for run in result.runs)
    assert result.total.metric == "spearman"


@pytest.mark.long
def test_several_positives_of_one_anchor_are_not_each_others_negatives(run, tmp_path):
    texts = small_base.sentences(160, 14)
    rows = [(text, form) for text in texts for form in (small_base.other(text), " ".join(reversed(text.split())))]
    random.Random(0).shuffle(rows)
    done, _, _ = run(small_base.write_rows(tmp_path / "faq.tsv", "question answer", rows), budget="10steps")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert records(tmp_path)
    assert all(record["outcome"]["masked"] > 0 for record in records(tmp_path))


@pytest.mark.long
def test_all_columns_of_negatives_are_read_and_used(run, tmp_path):
    sentences = small_base.sentences(203, 15)
    rows = [
        (a, small_base.other(a), small_base.other(b), small_base.other(c), "")
        for a, b, c in zip(sentences, sentences[1:], sentences[2:], strict=False)
    ]
    path = tmp_path / "faq.csv"
    lines = ["question,answer,negative_1,negative_2,negative_3", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    done, result, _ = run(path, budget="10steps")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "201 triplets (question, answer, negative_1, negative_2, negative_3)" in done.stdout
    assert "negatives: 2" in result.recipe


@pytest.mark.long
def test_documents_with_titles_are_judged_by_them(run, tmp_path):
    draw = random.Random(3)
    rows = []
    for sentence in small_base.sentences(150, 16):
        words = sentence.split()
        body = [f"{draw.choice(words)} {small_base.OTHER[word]} {word}." for word in (*words, *words)]
        rows.append((" ".join(words[:3]), " ".join(body)))
    done, result, _ = run(small_base.write_rows(tmp_path / "docs.tsv", "title text", rows), budget="30steps")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "150 pairs (title, text)" in done.stdout
    names = {route.name for route in result.routes}
    assert {"pairs", "spans, then pairs"} <= names
    assert result.total.metric == "ndcg@10"
    assert any("training reads" in note for source in result.sources for note in source.notes)
