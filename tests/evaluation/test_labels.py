"""Labelled texts: nearest neighbours and average precision by hand, and by a slow oracle."""

import numpy as np
import pytest

from sentloom.evaluation.labels import (
    _divided,
    classification_task,
    neighbour_scores,
    neighbour_task,
    probe_task,
)
from sentloom.evaluation.set_source import Rows
from tests.evaluation.by_hand import any_vectors, at_angles

FAN = {"a": 0, "b": 10, "c": 25, "d": 45, "e": 70, "f": 100}


def rows(**labels):
    return Rows({"text": list(labels), "label": list(labels.values())}, "tickets.csv")


def test_neighbours_by_hand():
    # a (0) ranks b x, c y, f x: precisions 1 and 2/3. e (70) ranks f x, c y, b x: y is second.
    found = neighbour_scores(at_angles(**FAN), rows(a="x", e="y"), rows(b="x", c="y", f="x"))
    assert found["accuracy"].items.tolist() == [[1], [0]]
    assert found["map"].items[:, 0].tolist() == pytest.approx([(1 + 2 / 3) / 2, 1 / 2])


def test_ties_count_against_the_system():
    same = dict.fromkeys(FAN, 0)
    found = neighbour_scores(at_angles(**same), rows(a="x"), rows(b="x", c="y", f="y"))
    assert (found["accuracy"].value, found["map"].value) == (0, pytest.approx(100 / 3))


def test_a_label_without_a_known_row_is_left_out():
    task = neighbour_task("t", rows(a="x", b="new", c="y"), rows(d="x", e="y"))
    assert [asked for asked, _ in task.items] == ["a", "c"]
    found = neighbour_scores(at_angles(**FAN), rows(a="x", b="new", c="y"), rows(d="x", e="y"))
    assert len(found["accuracy"].items) == 2


def test_many_rows_against_a_slow_oracle():
    draw = np.random.default_rng(0)
    asked, known = (
        Rows({"text": [f"{kind} {n}" for n in range(count)], "label": draw.integers(0, 5, count).tolist()}, "t")
        for kind, count in (("q", 40), ("k", 120))
    )
    found = neighbour_scores(any_vectors, asked, known)
    left, right = (any_vectors(some["text"]).astype(np.float64) for some in (asked, known))
    cosines = left @ right.T / np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    for row, label, got, precision in zip(
        cosines, asked["label"], found["accuracy"].items, found["map"].items, strict=True
    ):
        hits = [known["label"][at] == label for at in np.argsort(-row)]
        assert got[0] == hits[0]
        assert precision[0] == pytest.approx(np.mean([sum(hits[: n + 1]) / (n + 1) for n in range(120) if hits[n]]))


def test_neighbours_and_probe_are_tasks_of_their_own():
    many = rows(**{f"t{n}": "xy"[n % 2] for n in range(60)})
    neighbours, probe = neighbour_task("t", many, many), probe_task("t", many, many, {"preset": "fast"})
    assert (neighbours.main, list(neighbours.score(any_vectors))) == ("accuracy", ["accuracy", "map"])
    assert (probe.main, list(probe.score(any_vectors))) == ("probe", ["probe"])
    assert list(classification_task("t", many, {"preset": "fast"}).score(any_vectors)) == ["accuracy"]
    assert (probe.settings.trained, probe.settings.labels) == (49, 2)  # 2, and four fifths of the 58 others


def test_a_probe_learns_from_known_rows_what_neighbours_cannot_see():
    # Even texts are labelled by the first coordinate, which the other, larger ones hide from the nearest neighbour.
    draw = np.random.default_rng(0)
    hidden = {f"t{n}": draw.normal(size=20) for n in range(400)}

    def lookup(texts, role="symmetric"):
        return np.array([hidden[text] for text in texts], np.float32)

    labels = {text: "xy"[int(vector[0] > 0)] for text, vector in hidden.items()}
    asked, known = (rows(**dict(list(labels.items())[part])) for part in (slice(100), slice(100, None)))
    found = probe_task("t", asked, known, {"preset": "fast"}).score(lookup)["probe"]
    assert found.value > 90
    assert neighbour_scores(lookup, asked, known)["accuracy"].value < 80
    assert found.items[:, 1].tolist() == [float(label == "y") for label in asked["label"]]


def test_a_probe_trains_on_the_first_row_of_every_label():
    labels = ["a", "b", "a", "a", "c", "b", "a", "a", "a", "a", "b", "a"]
    trained, chosen_on = _divided(labels)
    assert {0, 1, 4} <= set(trained)
    assert len(chosen_on) == 1  # a fifth of the nine others
    assert sorted([*trained, *chosen_on]) == list(range(12))
    assert sum(map(len, _divided(labels, most=8))) == 8


def test_there_is_no_probe_without_rows_to_choose_its_weight_decay_on():
    assert probe_task("t", rows(a="x", b="y"), rows(c="x", d="y", e="x"), {"preset": "fast"}) is None
