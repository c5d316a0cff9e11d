"""The advice after a refusal follows from the numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from sentloom.fitting.advice import Advice, AdviceKind, Refusal
from sentloom.report.advice import sentence
from tests.report.results_by_hand import measure

# 812 items; the interval of the difference is 1 wide to both sides
GAIN = measure(before=60.0, after=60.5, spread=2.0)
LOSS = measure(before=60.0, after=57.0, spread=2.0)


def said(decided, gain=1.0, steps=60, **facts):
    refusal = Refusal(decided, gain, Path("my model.fit"), steps=steps, **facts)
    return " ".join(sentence(given, decided) for given in refusal.advice)


@pytest.mark.parametrize("kind", AdviceKind)
def test_every_advice_has_a_sentence(kind):
    assert sentence(Advice(kind, 40, 200, ("pairs",)), GAIN).endswith((".", ")."))


def test_a_clear_loss_asks_for_no_more_steps():
    text = said(LOSS)
    assert "Training made the base worse by 3.00 points: keep the base as it is." in text
    assert "budget" not in text


def test_a_gain_within_chance_says_how_many_clusters_would_show_it():
    # half a point of gain, an interval of one point to each side: (1 / 0.5)^2 = 4 times as many clusters, not items,
    # show it in every second case; for 80% it takes (2.8 / 1.96)^2 = 2.0408 times as many: 640 * 8.1633 = 5,224.5
    assert "A gain of +0.50 in 640 test clusters may be chance; about 5,225 would detect it with 80% power" in said(
        GAIN
    )


def test_too_few_clusters_say_how_many_more_are_needed():
    few = replace(LOSS, clusters=14, effective=11.7)
    assert "Too few test clusters to show anything: at least 9 more are needed." in said(few)
    assert "worse" not in said(few)


def test_no_gain_at_all_needs_no_more_items():
    assert "The base is at least as good (60.00 against 59.80)" in said(measure(before=60.0, after=59.8, spread=2.0))


def test_raw_text_asks_for_labelled_pairs_and_labels_do_not():
    assert "A few hundred labelled pairs" in said(GAIN, label_free=True)
    assert "`sentloom tick 'my model.fit'` shows about 30 queries" in said(GAIN, label_free=True)
    assert "may be chance" not in said(GAIN, label_free=True), "more rows without labels would show nothing either"
    assert "keep the base as it is" in said(LOSS, label_free=True)
    assert "A few hundred labelled pairs" not in said(GAIN)


def test_a_base_that_solves_the_rows_is_said():
    assert "already scores 97.00 of 100" in said(measure(before=97.0, after=97.1, spread=2.0))
    assert "already scores" not in said(GAIN)


def test_validation_and_test_rows_that_disagree():
    better = replace(GAIN, low=0.1, high=0.9)
    assert "The validation rows and the test rows disagree" in said(better, gain=-0.2)


def test_a_larger_budget_is_advised_only_where_it_left_something_out():
    late = said(GAIN, late=("bootstrapped", "tsdae"))
    assert "Not tried for lack of time: bootstrapped, tsdae. A larger budget leaves time for more routes." in late
    assert "--budget" not in said(GAIN)


def test_a_short_training_is_said():
    assert "So few steps (3) teach little" in said(GAIN, steps=3)
    for steps in (0, 60):
        assert "teach little" not in said(GAIN, steps=steps)
    assert "teach little" not in said(LOSS, steps=3)


def test_text_that_the_base_does_not_know():
    advice = said(LOSS, not_prose=True)
    assert advice.startswith("Give labelled pairs, or name a labelled set that decides (--against)")
    assert "choose one that does (--base)" in advice
