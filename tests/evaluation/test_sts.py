"""STS aggregation against plain loops on small sets made by hand."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from sentloom.evaluation.sts import Aggregation, evaluate_sts, score_set
from sentloom.evaluation.sts_sets import StsSet, StsSuite


def random_set(name, sizes, seed, words=40):
    """A set with sub-sets of the given sizes over a small vocabulary, so that sentences come again."""
    rng = np.random.default_rng(seed)
    pairs = sum(sizes.values())
    left, right = ([f"sentence {number}" for number in rng.integers(0, words, pairs)] for _ in range(2))
    subsets = [subset for subset, size in sizes.items() for _ in range(size)]
    return StsSet(name, left, right, rng.integers(0, 26, pairs) / 5, subsets)


def encode(sentences):
    return np.stack([np.random.default_rng(sum(text.encode())).normal(size=16) for text in sentences]).astype(
        np.float32
    )


SIZES = {"news": 30, "forum": 7, "images": 13}


def _slow_cosines(one):
    pairs = zip(encode(one.sentences1).tolist(), encode(one.sentences2).tolist(), strict=True)
    return [round(_dot(a, b) / math.sqrt(_dot(a, a) * _dot(b, b)), 10) for a, b in pairs]


def _dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _slow_scores(one, correlate):
    cosines = _slow_cosines(one)
    parts = []
    for subset, size in SIZES.items():
        rows = [row for row, name in enumerate(one.subsets) if name == subset]
        parts.append((100 * correlate([cosines[r] for r in rows], [one.gold[r] for r in rows]).statistic, size))
    return {
        "all": 100 * correlate(cosines, one.gold).statistic,
        "mean": sum(score for score, _ in parts) / 3,
        "wmean": sum(score * size for score, size in parts) / 50,
    }


@pytest.mark.parametrize("seed", range(5))
def test_three_aggregations_equal_plain_loops(seed):
    one = random_set("STS12", SIZES, seed)
    score = evaluate_sts(encode, StsSuite((one,))).sets[0]
    for measure, correlate in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        got = {name: getattr(correlation, measure) for name, correlation in score.scores.items()}
        assert got == pytest.approx(_slow_scores(one, correlate), abs=1e-6)
    assert {name: part.pairs for name, part in score.subsets.items()} == SIZES
    assert score.pairs == 50


def test_aggregations_by_hand():
    # Sub-set a is in perfect order, b in reverse: mean (100 - 100) / 2, wmean (3 * 100 - 2 * 100) / 5.
    # Joined, ranks (1 2 3 4 5) against gold ranks (1 2 3 5 4): 1 - 6 * 2 / (5 * 24) = 0.9.
    one = StsSet("x", [""] * 5, [""] * 5, np.array([1.0, 2.0, 3.0, 5.0, 4.0]), ["a", "a", "a", "b", "b"])
    scores = score_set(one, np.array([0.1, 0.2, 0.3, 0.4, 0.5])).scores
    assert {name: correlation.spearman for name, correlation in scores.items()} == pytest.approx(
        {"all": 90.0, "mean": 0.0, "wmean": 20.0}
    )


def test_every_distinct_sentence_of_the_suite_is_encoded_once():
    seen = []

    def counting(sentences):
        seen.extend(sentences)
        return encode(sentences)

    suite = StsSuite((random_set("STS12", SIZES, 0), random_set("STS-B", {"STS-B": 20}, 1)))
    evaluate_sts(counting, suite)
    everything = {text for one in suite.sets for side in (one.sentences1, one.sentences2) for text in side}
    assert len(seen) == len(set(seen))
    assert set(seen) == everything


def test_average_is_the_plain_mean_of_unrounded_scores():
    suite = StsSuite((random_set("STS12", SIZES, 0), random_set("STS13", SIZES, 1)))
    result = evaluate_sts(encode, suite)
    for aggregation in Aggregation:
        average = result.average(aggregation)
        both = [one.scores[aggregation].spearman for one in result.sets]
        assert average.correlation.spearman == pytest.approx(sum(both) / 2, abs=1e-12)
        assert average.label == "mean of 2 sets"


def test_missing_sets_are_named_and_the_average_says_so():
    suite = StsSuite((random_set("STS12", SIZES, 0),), ("STS16", "SICK-R"))
    result = evaluate_sts(encode, suite)
    assert result.average().label == "mean of 1 of 3 sets"
    assert result.notes == ("STS16: missing, left out of the average", "SICK-R: missing, left out of the average")


def test_unknown_subsets_leave_mean_and_wmean_absent():
    known, unknown = random_set("STS12", SIZES, 0), random_set("STS13", SIZES, 1)
    unknown = StsSet(unknown.name, unknown.sentences1, unknown.sentences2, unknown.gold, None)
    result = evaluate_sts(encode, StsSuite((known, unknown)))
    assert set(result.sets[1].scores) == {Aggregation.ALL}
    assert result.average(Aggregation.ALL).label == "mean of 2 sets"
    assert result.average(Aggregation.MEAN).label == "mean of 1 of 2 sets"
    assert any("STS13: sub-sets unknown" in note for note in result.notes)
    alone = evaluate_sts(encode, StsSuite((unknown,)))
    assert alone.average(Aggregation.WMEAN) is None
    assert alone.to_dict()["average"]["wmean"] is None


def test_a_set_scored_whole_has_three_equal_aggregations():
    scores = evaluate_sts(encode, StsSuite((random_set("STS-B", {"STS-B": 40}, 3),))).sets[0].scores
    assert [scores[name].spearman for name in Aggregation] == pytest.approx([scores["all"].spearman] * 3)


def test_a_constant_encoder_scores_zero_with_a_note():
    result = evaluate_sts(lambda texts: np.ones((len(texts), 4)), StsSuite((random_set("STS12", SIZES, 0),)))
    assert all(score.spearman == score.pearson == 0.0 for score in result.sets[0].scores.values())
    assert result.notes == ("STS12: all cosines are equal, which scores 0",)


def test_json_keeps_every_digit():
    result = evaluate_sts(encode, StsSuite((random_set("STS12", SIZES, 0),), ("STS16",)))
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["sets"][0]["scores"]["wmean"]["pearson"] == result.sets[0].scores["wmean"].pearson
    assert plain["sets"][0]["subsets"]["forum"]["pairs"] == 7
    assert plain["average"]["all"]["label"] == "mean of 1 of 2 sets"
    assert plain["missing"] == ["STS16"]
