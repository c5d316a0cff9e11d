"""How numbers are said."""

from dataclasses import replace

import numpy as np
import pytest

from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score
from sentloom.fitting.measures import Limit
from sentloom.fitting.result import Agreement, Merging, Ticks
from sentloom.report import formatting
from sentloom.report.page import render
from tests.report.results_by_hand import BARE, FULL


@pytest.mark.parametrize(
    ("value", "plain", "signed"),
    [(61.2, "61.20", "+61.20"), (-1.666, "−1.67", "−1.67"), (0.0, "0.00", "0.00"), (-0.001, "0.00", "0.00"), (0.001, "0.00", "0.00"),
     (12345.0, "12,345.00", "+12,345.00"), (None, "–", "–"), (float("nan"), "–", "–"), (float("inf"), "–", "–")],
)  # fmt: skip
def test_numbers(value, plain, signed):
    assert formatting.number(value) == plain
    assert formatting.signed(value) == signed


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(4.21, "4.2 s"), (48.4, "48 s"), (89.6, "90 s"), (90, "1.5 min"), (316, "5.3 min"), (720, "12 min"), (12240, "3.4 h"), ("words", "words")],
)  # fmt: skip
def test_durations(seconds, said):
    assert formatting.duration(seconds) == said


def test_a_small_p_is_less_than_the_smallest_that_is_shown():
    assert [formatting.chance(p) for p in (0.0, 0.0004, 0.004, 0.0123, 1.0)] == [
        *("p < 0.001", "p < 0.001", "p = 0.004", "p = 0.012", "p = 1.000")
    ]
    ones = Score("mean", np.arange(1.0, 21.0)[:, None])
    assert formatting.chance(compare_averages([ones], [Score("mean", np.zeros((20, 1)))]).p) == "p < 0.001"


def test_the_headline_says_what_became_of_the_model():
    assert formatting.headline(FULL) == "Better than the best base"
    assert formatting.headline(replace(FULL, bases=FULL.bases[:1])) == "Better than its base"
    assert formatting.headline(BARE) == "No difference shown: no model was written"
    worse = replace(FULL, verdict="worse", forced=True)
    assert formatting.headline(worse) == "Worse than the best base: written anyway (--force)"


def test_a_model_that_is_not_shown_to_be_better_is_not_recommended():
    assert formatting.caution(FULL) == ""
    assert formatting.caution(BARE) == ""  # there is no model
    unsure = replace(FULL, verdict="no difference shown", forced=True)
    assert formatting.caution(unsure).startswith("This model is not shown to be better than its base, and was written")
    assert formatting.caution(unsure) in render("report.md", unsure, pictures={})
    assert formatting.caution(replace(unsure, verdict="worse")).startswith("This model is worse than its base,")


def test_what_a_verdict_rests_on_is_said_in_sentences():
    said = formatting.evidence(FULL)
    assert said[0].startswith("812 test items in 640 clusters, an effective number of 512.3:")
    assert "halves: queries search a sample of 900 of 1,456 candidates, the same for base and model." in said
    assert any(
        line.startswith("These test rows have 80% power to detect a gain of 2.1 points, assuming that") for line in said
    )
    assert "Validation and test rows agree." in said
    assert any(line.startswith("This is model number 3 that is tested on these rows.") for line in said)
    assert "notes.txt: clustered by equal texts." in said
    assert said[-1] == (
        "Accept nearest matches with a cosine of at least 0.63: precision 91% and recall 74% for the 812 queries of the "
        "validation rows, which it was chosen on; 89% and 72% for test queries."
    )
    assert formatting.evidence(BARE) == []


def test_a_precision_that_is_not_reached_is_admitted():
    missed = replace(FULL.threshold, precision=0.7)
    said = formatting.evidence(replace(FULL, threshold=missed))[-1]
    assert said.startswith(
        "No cosine threshold is advised: none reaches a precision of 90%. The best, 0.63, has precis"
    )
    assert "Accept" not in said
    none = replace(FULL.threshold, test_precision=None)
    assert formatting.evidence(replace(FULL, threshold=none))[-1].endswith("; none is accepted for test queries.")


def test_where_no_gain_can_be_shown_none_is_named():
    silent = replace(FULL, power=replace(FULL.power, gain=None, limit=Limit.HIGHEST))
    assert "No gain can be shown: the base already has the highest score on every test row." in formatting.evidence(
        silent
    )
    assert not any("power to detect a gain of" in line for line in formatting.evidence(silent))


def test_a_whole_corpus_and_a_first_use_are_not_called_a_sample_or_a_repetition():
    whole = tuple(replace(one, documents=1456) for one in FULL.measures)
    said = " ".join(formatting.evidence(replace(FULL, measures=whole, uses=1)))
    assert "search all 1,456 candidates" in said
    assert "sample" not in said
    assert "model number" not in said


def test_ticks_say_who_compared_what_and_how_far_they_agree():
    ticks = Ticks(2, 45, 3, 30, 389, 120, 22.5, 41.0, Agreement(30, 80.0, 62.7, 90.4, 0.614))
    said = " ".join(formatting.evidence(replace(FULL, ticks=ticks, label_free=True)))
    assert (
        "2 people compared the first results of base and model, without knowing whose they are, for 45 of the 120"
        in said
    )
    assert "of 389 in all; the verdict rests on the first 30." in said
    assert "2 people agree on 80% of the 30 queries" in said
    assert "95% interval 63% to 90%, Cohen's kappa 0.61" in said
    alone = formatting.evidence(replace(FULL, ticks=replace(ticks, people=1, agreement=None)))[0]
    assert alone.startswith("One person compared")
    assert alone.endswith("389 in all."), "where labels decide, the verdict rests on no tick"


def test_stability_is_one_number_and_no_gain():
    said = formatting.stability(FULL)
    assert "agree on 97.7% of the 10 nearest neighbours of 250 held-out texts" in said
    assert "(95% interval 97.1% to 98.3%)" in said
    assert formatting.stability(BARE) == ""


def test_prompts_and_adapters_of_the_base_that_the_model_started_from():
    prompts, adapters, _ = formatting.evidence(FULL)[-3:]
    assert prompts.startswith("Queries and documents have the prompts")
    assert adapters.startswith("The base has 568 million parameters, so adapters (LoRA) were trained")
    assert not [line for line in formatting.evidence(replace(FULL, started_from="embedded")) if "LoRA" in line]


def test_scores_that_appear_are_explained():
    assert list(formatting.glossary(FULL)) == ["MRR@10"]
    labels = replace(FULL.measures[0], metric="accuracy", also={"map": (54.1, 61.5), "probe": (80.2, 82.3)})
    found = formatting.glossary(replace(FULL, measures=(labels,)))
    assert list(found) == ["MAP", "linear probe"]
    assert "same label" in found["MAP"]


def test_merging_and_what_the_time_ran_out_for_are_said():
    merging = Merging("pairs, merged with 50% of the base", True, 62.16, 62.45, "general triplets", 81.25, 78.33, 80.0)
    found = formatting.evidence(replace(FULL, merging=merging, changes=("pairs does not run in round 3",)))
    assert found[-2:] == [
        "The best merged model (pairs, merged with 50% of the base) was preferred: 62.45 on the validation rows, 62.16 "
        "before merging. General ability (general triplets): 81.25, 78.33, 80.00 for base, trained and merged model.",
        "The time ran out: pairs does not run in round 3.",
    ]
    lower = formatting.evidence(replace(FULL, merging=replace(merging, merged=62.0)))[-1]
    assert "was preferred in a tie, because it is closer to the base: 62.00 on the" in lower
    assert [formatting.steps_in_words(steps) for steps in ([0], [40], [40, 62])] == [
        "merged",
        "40 steps",
        "40 to 62 steps",
    ]
