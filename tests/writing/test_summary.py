"""The summary: counted by hand, and a sample that does not depend on the order of rows."""

import json
import random

from sentloom.writing.filters import Candidate, Filtering
from sentloom.writing.triplets import SAMPLES, Tally


def rows(n=3):
    return [Candidate(at, f"source {at}", "entailment", 0, f"text {at}", at / n) for at in range(n)]


def test_counts_by_hand(tmp_path):
    tally = Tally(("entailment", "contradiction"))
    entailed = Candidate(7, "s", "entailment", 0, "e", 0.97)
    tally.add([entailed, Candidate(7, "s", "contradiction", 0, "c", 0.31)], ["", "score"])
    tally.add([Candidate(8, "t", "entailment", 0, "", 1.0), Candidate(8, "t", "contradiction", 0, "d", 0.0)], ["empty", "score"])  # fmt: skip
    summary = tally.summary(raw_rows=5, triplets=0, pairs=1, filtering=Filtering())
    entailment, contradiction = summary.kinds["entailment"], summary.kinds["contradiction"]
    assert (summary.sources, summary.raw_rows, summary.triplets, summary.pairs) == (2, 5, 0, 1)
    assert (entailment.kept, entailment.dropped, entailment.written) == (1, {"empty": 1}, 2)
    assert (contradiction.kept, contradiction.dropped) == (0, {"score": 2})
    assert entailment.histogram == [0] * 19 + [2]
    assert contradiction.histogram == [1, 0, 0, 0, 0, 0, 1] + [0] * 13
    assert [sample.text for sample in entailment.kept_samples] == ["e"]
    assert {sample.reason for sample in contradiction.dropped_samples} == {"score"}
    summary.write(tmp_path / "summary.json")
    values = json.loads((tmp_path / "summary.json").read_text())
    assert values["filtering"]["threshold"] == 0.9
    assert values["kinds"]["entailment"]["kept"] == 1


def test_tokens_and_scores_of_the_cross_encoder_by_hand():
    tally = Tally(("query",))
    judged = [(3.9, 40, 5), (3.0, 60, 7), (-0.5, 50, 9)]
    for at, (score, read, written) in enumerate(judged):
        one = Candidate(at, "s", "query", 0, "q", 1.0, style="title", cross_encoder=score)
        tally.add([one._replace(tokens_read=read, tokens_written=written)], ["" if score > 0 else "cross-encoder"])
    summary = tally.summary(3, 0, 2, Filtering())
    one = summary.kinds["query"]
    assert (one.tokens_read, one.tokens_written, one.relevance) == (150, 21, {-1: 1, 3: 2})
    assert {(sample.style, sample.cross_encoder) for sample in one.dropped_samples} == {("title", -0.5)}
    assert summary.score == "score: 1 / rank of the source"
    assert summary.least_score == (1.0, "a query must find its source first")


def test_a_score_that_is_no_number_is_in_no_bin():
    tally = Tally(("entailment", "contradiction"))
    tally.add([Candidate(0, "s", "entailment", 0, "e", float("nan"))], ["score"])
    entailment = tally.summary(1, 0, 0, Filtering()).kinds["entailment"]
    assert sum(entailment.histogram) == 0
    assert entailment.written == 1


def test_samples_are_fair_and_do_not_depend_on_order():
    tallies = []
    for seed in (1, 2):
        mixed = rows(2000)
        random.Random(seed).shuffle(mixed)
        tally = Tally(("entailment", "contradiction"))
        for row in mixed:
            tally.add([row], [""])
        tallies.append(tally.summary(2000, 0, 0, Filtering()).kinds["entailment"].kept_samples)
    assert tallies[0] == tallies[1]
    numbers = [int(sample.text.split()[1]) for sample in tallies[0]]
    assert len(set(numbers)) == SAMPLES
    assert 500 < sum(numbers) / SAMPLES < 1500  # from everywhere: the mean of 20 fair ones lies within 4 deviations
    assert max(numbers) - min(numbers) > 1000
