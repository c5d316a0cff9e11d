"""The verdict: when answers are looked at, what they show, and what becomes of the fit."""

from dataclasses import replace

import pytest

from sentloom.errors import InputError
from sentloom.evaluation.significance import corrected_level
from sentloom.fitting.advice import Advice, AdviceKind
from sentloom.fitting.result import FitResult
from sentloom.report.advice import advice
from sentloom.report.formatting import warnings
from sentloom.ticking.questions import Questions
from sentloom.ticking.verdict import looks, rule, sentence, with_ticks
from tests.report.results_by_hand import FULL, measure

QUERIES = [f"query {n}" for n in range(100)]
RAW = replace(
    FULL,
    verdict="no difference shown",
    model=None,
    label_free=True,
    hashes={"base": "b", "model": "f"},
    measures=(measure(), measure("general", part="general")),
    runs=(replace(FULL.runs[-1], verdict="best, not written"),),
    warnings=("General ability fell.",),
    advice=(Advice(AdviceKind.TICK, names=("m.fit",)),),
)


@pytest.fixture(autouse=True)
def same_queries(monkeypatch):
    monkeypatch.setattr("sentloom.ticking.verdict.read_queries", lambda folder: QUERIES)


def test_looks_are_at_30_60_120_and_at_the_end():
    assert looks(500) == [30, 60, 120, 240, 500], "480 would be too near to the end"
    assert looks(60) == [30, 60]
    assert looks(40) == [40]
    assert looks(25) == [25]
    assert looks(19) == []


def test_nothing_is_decided_before_the_first_look(answered):
    found = rule([answered(*["fitted"] * 29)], QUERIES)
    assert (found.gate.verdict, found.decided, found.uses, found.next_look) == ("no difference shown", None, None, 30)
    assert found.so_far.low > 0
    assert "29 of 30 ticks" in found.gate.reason
    assert found.verdict_line == "VERDICT no difference shown ticks=29"


def test_at_30_answers_the_gate_speaks_and_later_ones_wait_for_the_next_look(answered):
    first = rule([answered(*["fitted"] * 30)], QUERIES)
    assert first.gate.passed
    assert (first.decided.items, first.uses.number, first.next_look) == (30, 1, 50)
    assert first.decided.difference == pytest.approx(50), "50 of 100 queries differ, and people prefer all of these"
    assert (first.decided.before, first.decided.after) == pytest.approx((0, 50))
    assert first.verdict_line.startswith("VERDICT better +50.0 preference [")
    assert first.verdict_line.endswith("clusters=30 effective=30 documents=500 uses=1")
    later = rule([answered(*["fitted"] * 30, "base")], QUERIES)
    assert later.decided == first.decided
    assert later.so_far.difference < 50
    again = rule([answered(*["fitted"] * 30, *["base"] * 20)], QUERIES)
    assert (again.uses.number, again.decided.level, again.next_look) == (2, corrected_level(2), None)


def test_all_base_is_worse_and_both_is_no_difference(answered):
    assert rule([answered(*["base"] * 30)], QUERIES).gate.verdict == "worse"
    both = rule([answered(*["both", "neither"] * 15, name="both.jsonl")], QUERIES)
    assert (both.gate.verdict, both.decided.difference) == ("no difference shown", 0)


def test_a_second_person_is_looked_at_only_at_looks_of_their_own(answered):
    """Every one of their answers changes a tick of the first person: each would be a use otherwise."""
    first = answered(*["fitted"] * 30)
    alone = rule([first], QUERIES)
    for many in (1, 15, 29):
        found = rule([answered(*["base"] * many, name=f"{many}.jsonl"), first], QUERIES)
        assert (found.decided, found.uses, found.next_look) == (alone.decided, alone.uses, 30)
        assert found.so_far.difference < alone.decided.difference
        assert found.ticks.agreement.queries == many
    both = rule([answered(*["base"] * 30, name="second.jsonl"), first], QUERIES)
    assert (both.decided.difference, both.uses.number, both.next_look) == (0, 2, 50)


def test_skipped_queries_are_no_answers_and_bring_the_end_nearer(answered):
    found = rule([answered(*["skip"] * 12, *["fitted"] * 20)], QUERIES)
    assert (found.ticks.answered, found.ticks.skipped, found.next_look) == (20, 12, 38)


def test_the_same_answers_are_the_same_use_and_other_answers_another(answered):
    one = answered(*["fitted"] * 30, name="one.jsonl")
    other = answered(*["fitted"] * 20, *["base"] * 10, name="other.jsonl")
    assert [rule(people, QUERIES).uses.number for people in ([one], [one], [one, other])] == [1, 1, 2]
    found = rule([one, other], QUERIES).ticks
    assert (found.people, found.agreement.queries) == (2, 30)
    assert found.agreement.share == pytest.approx(200 / 3)


def test_the_sentence_says_what_the_estimate_means(answered):
    found = rule([answered(*["fitted"] * 15, *["base"] * 9, *["both"] * 6)], QUERIES)
    text = sentence(found.decided, found.ticks)
    assert "Of the 50 of 100 held-out queries for which the two models return a different first result" in text
    assert (
        "people prefer the fitted model's for 50% and the base's for 30%; over all queries that is +10.0 points" in text
    )


def test_ticks_decide_a_fit_without_labels(answered, tmp_path):
    found = with_ticks(RAW, [answered(*["fitted"] * 30)], tmp_path, tmp_path / "model", force=False)
    assert (found.verdict, found.model, found.forced) == ("better", str(tmp_path / "model"), False)
    assert [(measure.name, measure.part) for measure in found.measures] == [
        ("ticks", "deciding"),
        ("halves", "watched"),
        ("general", "general"),
    ]
    assert found.total.name == "ticks"
    assert [run.verdict for run in found.runs] == ["won"]
    assert not found.decided_without_labels
    assert warnings(found) == ["General ability fell."]
    assert (found.advice, found.uses, found.ticks.used) == ((), 1, 30)
    found.write(tmp_path / "report.json")
    assert FitResult.read(tmp_path / "report.json").ticks == found.ticks


def test_a_worse_model_is_written_only_by_force(answered, tmp_path):
    people = [answered(*["base"] * 30)]
    refused, forced = (with_ticks(RAW, people, tmp_path, tmp_path / "m", force=force) for force in (False, True))
    assert (refused.verdict, refused.model, refused.runs[0].verdict) == ("worse", None, "best, not written")
    assert advice(refused) == ["People prefer what the base finds: keep the base as it is."]
    unsure = with_ticks(RAW, [answered(*["both"] * 30, name="both.jsonl")], tmp_path, tmp_path / "m", force=False)
    assert "the next look is at 50" in advice(unsure)[0]
    assert (forced.model, forced.forced, forced.runs[0].verdict) == (str(tmp_path / "m"), True, "best, forced")


def test_where_labels_decide_ticks_are_shown_and_decide_nothing(answered, tmp_path):
    labelled = replace(RAW, label_free=False)
    found = with_ticks(labelled, [answered(*["base"] * 30)], tmp_path, tmp_path / "m", force=False)
    assert (found.verdict, found.total, found.measures[-1].part) == (labelled.verdict, labelled.total, "watched")
    assert found.ticks.base == 100


def test_too_few_answers_leave_the_fit_as_it_was_and_say_so(answered, tmp_path):
    found = with_ticks(RAW, [answered(*["fitted"] * 12)], tmp_path, tmp_path / "m", force=False)
    assert (found.verdict, found.total, found.model) == (RAW.verdict, RAW.total, None)
    assert "12 of 30 ticks" in found.warnings[-1]


def test_answers_about_other_models_or_questions_are_refused(answered, questions, tmp_path):
    one = answered("fitted")
    with pytest.raises(InputError, match="other models"):
        with_ticks(replace(RAW, hashes={"base": "b", "model": "new"}), [one], tmp_path, tmp_path / "m", force=False)
    fewer = Questions(questions.asked[:30], (15, 15), 100, 500, 500)
    other = replace(one, header=replace(one.header, questions=fewer.sha256))
    with pytest.raises(InputError, match="asks other questions"):
        with_ticks(RAW, [one, other], tmp_path, tmp_path / "m", force=False)
