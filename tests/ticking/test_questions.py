"""Questions: where first results differ, how much, and the order in which they are asked."""

import numpy as np

from sentloom.ticking.questions import RATES, differences, make_questions, turns

DOCUMENTS = ["red", "green", "blue", "grey"]
AXES = np.eye(4, dtype=np.float32)


def searching(*queries):
    return np.array(queries, np.float32), AXES


def test_only_different_first_results_are_asked_with_the_rank_of_the_other():
    base = searching([4, 3, 2, 1], [0, 1, 0, 0])
    fitted = searching([1, 2, 3, 4], [0, 1, 0.5, 0])
    (one,) = differences(["a", "b"], DOCUMENTS, base, fitted)
    assert (one.query, one.base, one.fitted) == (0, 0, 3)
    assert one.distance == 2 * (1 - 1 / 4), "each ranks the other's first result fourth"


def test_no_query_finds_itself():
    base, fitted = searching([4, 3, 2, 1]), searching([9, 1, 2, 3])
    (one,) = differences(["RED "], DOCUMENTS, base, fitted)
    assert (DOCUMENTS[one.base], DOCUMENTS[one.fitted]) == ("green", "grey")


def test_strata_by_disagreement_of_equal_size_and_every_query_once():
    draw = np.random.default_rng(2)
    documents, queries = [f"text {n}" for n in range(200)], [f"query {n}" for n in range(90)]
    vectors = [(draw.normal(size=(90, 8)), draw.normal(size=(200, 8))) for _ in range(2)]
    found = make_questions(queries, documents, *vectors, 200)
    assert sum(found.sizes) == len(found.asked) == len({question.query for question in found.asked})
    assert max(found.sizes) - min(found.sizes) <= 1
    by_query = {
        queries[difference.query]: difference.distance for difference in differences(queries, documents, *vectors)
    }
    spans = [
        [by_query[question.query] for question in found.asked if question.stratum == stratum] for stratum in range(3)
    ]
    assert max(spans[0]) <= min(spans[1]) <= max(spans[1]) <= min(spans[2])
    assert make_questions(queries, documents, *vectors, 200) == found, "the same questions in every run"
    assert found.sha256 != make_questions([*queries[:-1], "another"], documents, *vectors, 200).sha256


def test_every_beginning_keeps_the_proportions():
    """30 of three strata of 50: rates 1, 1.5 and 2 of 4.5 give 6.67, 10 and 13.33."""
    for many in range(10, 100, 10):
        counts = np.bincount([stratum for stratum, _ in list(turns([50, 50, 50]))[:many]], minlength=3)
        assert np.abs(counts - many * np.array(RATES) / sum(RATES)).max() <= 1
    whole = list(turns([3, 0, 5]))
    assert sorted(whole) == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]
    assert list(turns([0, 0, 0])) == []
