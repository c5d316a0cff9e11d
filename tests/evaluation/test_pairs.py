"""Scored, labelled and ranked pairs against hand-computed values, plain loops and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score

from sentloom.errors import InputError
from sentloom.evaluation.pairs import SEARCH, correlation_task, detection_task, ranking_task
from sentloom.evaluation.set_source import Rows
from tests.evaluation.by_hand import all_alike, any_vectors, at_angles, values


def rows_of(*rows, **more):
    first, second, scores = zip(*rows, strict=True)
    return Rows({"sentence1": first, "sentence2": second, "score": scores, **more}, "file.tsv")


def random_rows(seed, sizes):
    rng = np.random.default_rng(seed)
    pairs = sum(sizes.values())
    rows = [(f"left {a}", f"right {b}", g / 5) for a, b, g in rng.integers(0, 26, (pairs, 3))]
    return rows_of(*rows), [name for name, size in sizes.items() for _ in range(size)]


# Cosines against "a" at 0 degrees fall with the angle: b > c > d > e > f.
FAN = {"a": 0, "b": 10, "c": 20, "d": 30, "e": 40, "f": 50}


def test_three_aggregations_against_hand_computed_values():
    # Sub-set x is in perfect order, y in reverse: mean (100 - 100) / 2, wmean (3 * 100 - 2 * 100) / 5.
    # Joined, ranks (5 4 3 2 1) against gold ranks (5 4 3 1 2): 1 - 6 * 2 / (5 * 24) = 0.9.
    rows = rows_of(("a", "b", 5), ("a", "c", 4), ("a", "d", 3), ("a", "e", 1), ("a", "f", 2))
    found = values(correlation_task("set", rows, list("xxxyy"), each_group=True), at_angles(**FAN))
    assert {name: found[name] for name in found if "spearman" in name} == pytest.approx(
        {"spearman": 90, "spearman-mean": 0, "spearman-wmean": 20, "spearman x": 100, "spearman y": -100}
    )


@pytest.mark.parametrize("seed", range(3))
def test_aggregations_equal_plain_loops(seed):
    sizes = {"news": 30, "forum": 7, "images": 13}
    rows, groups = random_rows(seed, sizes)
    found = values(correlation_task("set", rows, groups), any_vectors)
    left, right = (any_vectors(rows[side]).astype(float) for side in ("sentence1", "sentence2"))
    cosines = [float(a @ b / np.sqrt((a @ a) * (b @ b))) for a, b in zip(left, right, strict=True)]
    for metric, correlate in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        parts = {}
        for name in sizes:
            chosen = [at for at, group in enumerate(groups) if group == name]
            parts[name] = correlate([cosines[at] for at in chosen], [rows["score"][at] for at in chosen]).statistic
        assert found[metric] == pytest.approx(100 * correlate(cosines, rows["score"]).statistic)
        assert found[f"{metric}-mean"] == pytest.approx(100 * sum(parts.values()) / 3)
        weighted = sum(parts[name] * size for name, size in sizes.items()) / 50
        assert found[f"{metric}-wmean"] == pytest.approx(100 * weighted)


def test_without_groups_the_score_is_over_all_pairs():
    task = correlation_task("set", random_rows(0, {"x": 9})[0])
    assert set(task.score(any_vectors)) == {"spearman", "pearson"}
    assert (task.main, task.source, len(task.sha256)) == ("spearman", "file.tsv", 64)


def test_a_task_lists_all_its_texts():
    task = correlation_task("set", rows_of(("a", "b", 1), ("c", "a", 2)))
    assert {role: set(texts) for role, texts in task.texts.items()} == {"symmetric": {"a", "b", "c"}}


def test_a_constant_side_scores_zero():
    assert set(values(correlation_task("set", random_rows(0, {"x": 9})[0]), all_alike).values()) == {0.0}
    task = correlation_task("set", rows_of(("a", "b", 2), ("a", "c", 2)))
    assert task.notes == ("all gold scores are equal, which scores 0",)
    assert values(task, at_angles(**FAN))["pearson"] == 0.0


def test_average_precision_against_hand_computed_values():
    # Ordered by cosine: 1 0 1 0, so precision is 1/1 at the first right pair and 2/3 at the second.
    rows = rows_of(("a", "d", 1), ("a", "c", 0), ("a", "b", 1), ("a", "e", 0))
    assert values(detection_task("set", rows), at_angles(**FAN)) == pytest.approx(
        {"average-precision": 100 * (1 + 2 / 3) / 2}
    )


def test_average_precision_of_constant_cosines_is_the_share_of_positive_pairs():
    rows = rows_of(("a", "d", 1), ("a", "c", 0), ("a", "b", 0), ("a", "e", 0))
    assert values(detection_task("set", rows), all_alike) == {"average-precision": 25.0}


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 1)), min_size=2, max_size=30))
def test_average_precision_equals_scikit_learn(cells):
    rows = rows_of(*((f"left {a}", f"right {b}", label) for a, b, label in cells))
    if len(set(rows["score"])) < 2:
        return
    left, right = (any_vectors(rows[side]).astype(float) for side in ("sentence1", "sentence2"))
    cosines = [round(float(a @ b / np.sqrt((a @ a) * (b @ b))), 9) for a, b in zip(left, right, strict=True)]
    expected = 100 * average_precision_score(rows["score"], cosines)
    assert values(detection_task("set", rows), any_vectors)["average-precision"] == pytest.approx(expected)


def test_ranking_against_hand_computed_values():
    # Question a: b wrong, c right, d wrong, e right: AP (1/2 + 2/4) / 2, first right at 2.
    # Question f at 50 degrees: e right before d wrong: AP 1. Question b has no right candidate.
    rows = rows_of(
        *(("a", "b", 0), ("a", "c", 1), ("f", "d", 0), ("a", "d", 0), ("a", "e", 1), ("f", "e", 1), ("b", "c", 0))
    )
    task = ranking_task("set", rows, rows["sentence1"])
    assert values(task, at_angles(**FAN)) == pytest.approx({"map": 75, "mrr": 75})
    assert task.notes == ("1 questions without a correct candidate are left out",)
    assert len(task.score(at_angles(**FAN))["map"].items) == 2


def test_ties_count_against_the_system():
    # All cosines are equal: the correct one of three candidates ranks last.
    rows = rows_of(("a", "b", 1), ("a", "c", 0), ("a", "d", 0))
    assert values(ranking_task("set", rows, rows["sentence1"]), all_alike) == pytest.approx(
        {"map": 100 / 3, "mrr": 100 / 3}
    )


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 1)), min_size=2, max_size=40))
def test_ranking_equals_scikit_learn_question_by_question(cells):
    candidates = {(question, candidate): label for question, candidate, label in cells}  # no ties within a question
    rows = rows_of(*((f"q {question}", f"c {candidate}", label) for (question, candidate), label in candidates.items()))
    if set(rows["score"]) != {0, 1}:
        return
    precisions = []
    for question in dict.fromkeys(rows["sentence1"]):
        chosen = [at for at, text in enumerate(rows["sentence1"]) if text == question]
        labels = [rows["score"][at] for at in chosen]
        query, vectors = any_vectors([question])[0], any_vectors([rows["sentence2"][at] for at in chosen])
        if any(labels):
            cosines = vectors @ query / np.linalg.norm(vectors, axis=1)
            precisions.append(average_precision_score(labels, cosines))
    found = values(ranking_task("set", rows, rows["sentence1"]), any_vectors)
    assert found["map"] == pytest.approx(100 * np.mean(precisions))


def test_roles_are_requested_and_looked_up():
    asked = []

    def lookup(texts, role):
        asked.append((role, *texts))
        return any_vectors(texts)

    task = ranking_task("set", rows_of(("a", "b", 1), ("a", "c", 0)), ["a", "a"], roles=SEARCH)
    task.score(lookup)
    assert task.texts == {"query": ["a", "a"], "document": ["b", "c"]}
    assert asked == [("query", "a", "a"), ("document", "b", "c")]


@pytest.mark.parametrize("labels", [(0, 0), (1, 1), (0, 2), (0.5, 1), (1, 2)])
def test_scores_other_than_labels_are_refused(labels):
    rows = rows_of(("a", "b", labels[0]), ("a", "c", labels[1]))
    for make in (detection_task, lambda name, rows: ranking_task(name, rows, ["a", "a"])):
        with pytest.raises(InputError, match=r"set in file.tsv: the labels"):
            make("set", rows)
