"""Filters: each one by hand, their order, and the presets as the paper and its code have them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sentloom.writing.filters import (
    KEPT,
    PRESETS,
    REASONS,
    Candidate,
    Filtering,
    copied_share,
    resemblance,
    same_language,
    verdict,
    verdicts,
)

SOURCE = "A man is playing a guitar on the stage."
OPEN = Filtering(threshold=0, drop_equal=False)
QUESTION = "Who is playing music?"


def row(text, score=0.95, source=SOURCE, kind="entailment", candidate=0, finished=True, **judged):
    return Candidate(0, source, kind, candidate, text, score, finished, **judged)


def query(**judged):
    return row(QUESTION, 1.0, kind="query", **judged)


@pytest.mark.parametrize(
    ("text", "score", "changes", "reason"),
    [
        ("A man plays.", 0.95, {}, KEPT),
        ("", 0.95, {}, "empty"),
        (" \n", 0.95, {}, "empty"),
        (SOURCE, 0.95, {}, "equal"),
        (f" {SOURCE.upper()}  ", 0.95, {}, "equal"),
        (SOURCE, 0.95, {"drop_equal": False}, KEPT),
        ("A man plays.", 0.9, {}, KEPT),
        ("A man plays.", 0.8999, {}, "score"),
        ("A man plays.", 0.8999, {"threshold": 0.8}, KEPT),
        ("A man plays.", math.nan, {"threshold": 0}, "score"),
        ("A man plays.", 0.95, {"source_words": 9}, KEPT),
        ("A man plays.", 0.95, {"source_words": 10}, "source words"),
        ("A man plays.", 0.95, {"words": 3}, KEPT),
        ("A man plays.", 0.95, {"words": 4}, "words"),
        ("a guitar?", 0.95, {"substring": True}, "substring"),  # "a guitar" stands in the source
        ("a guitar?", 0.95, {}, KEPT),
        (SOURCE[:-1] + " now.", 0.95, {"substring": True}, "substring"),  # the source without its stop stands in it
        ("a guitar stage", 0.95, {"substring": True}, KEPT),
    ],
)
def test_a_filter_drops_what_it_should(text, score, changes, reason):
    assert verdict(row(text, score), Filtering(**changes)) == reason


@pytest.mark.parametrize(
    ("one", "changes", "reason"),
    [
        (row(QUESTION, 1.0, kind="query"), {}, KEPT),  # its source comes first
        (row(QUESTION, 1 / 2, kind="query"), {}, "round trip"),
        (row(QUESTION, 1 / 3, kind="query"), {"round_trip": 3}, KEPT),
        (row(QUESTION, 1 / 4, kind="query"), {"round_trip": 3}, "round trip"),
        (row(QUESTION, 0.0, kind="query"), {"round_trip": 100}, "round trip"),
        (row(QUESTION, 0.0, kind="query"), {"round_trip": 0}, KEPT),
        (row("a man is playing a guitar now", 1.0, kind="query"), {}, "copied"),  # 6 of 7 words in one run
        (row("a man is playing a guitar now", 1.0, kind="query"), {"copied": 0.9}, KEPT),
        (row("playing a guitar", 1.0, kind="query"), {}, KEPT),  # three words are a name, not a copy
        (row("playing a guitar on", 1.0, kind="query"), {}, "copied"),
        (row(QUESTION, math.nan, kind="query"), {}, "round trip"),
        (query(bm25_rank=1, encoder_rank=1), {}, KEPT),
        (query(bm25_rank=0, encoder_rank=1), {}, KEPT),  # it shares no word with any text
        (query(bm25_rank=2, encoder_rank=1), {}, "vague"),
        (query(bm25_rank=1, encoder_rank=2), {}, "vague"),
        (query(bm25_rank=4, encoder_rank=9), {"drop_vague": False}, KEPT),
        (query(bm25_rank=3, encoder_rank=1), {"round_trip": 3}, KEPT),
        (query(bm25_rank=4, encoder_rank=1), {"round_trip": 3}, "vague"),
        (query(bm25_rank=4, encoder_rank=1), {"round_trip": 0}, KEPT),
        (query(cross_encoder=-0.1), {}, "cross-encoder"),
        (query(cross_encoder=0.0), {}, KEPT),
        (query(cross_encoder=3.9), {"cross_encoder": 4}, "cross-encoder"),
        (query(cross_encoder=-5.0), {"cross_encoder": -5}, KEPT),
        (query(cross_encoder=math.nan), {}, "cross-encoder"),
        (query(cross_encoder=-3.0, bm25_rank=2), {}, "vague"),  # the first one speaks
        (row("A man plays.", cross_encoder=-3.0), {}, KEPT),  # of queries alone
        (row("a man is playing a guitar now", 1.0), {}, KEPT),  # an entailment may say less of the same
        (row("Wer spielt hier auf der Gitarre, ein Mann oder eine Frau?", 1.0, kind="query"), {}, "language"),
        (
            row("Wer spielt hier auf der Gitarre, ein Mann oder eine Frau?", 1.0, kind="query"),
            {"language": False},
            KEPT,
        ),
        (row("A man plays.", finished=False), {}, "unfinished"),
        (row("A man plays.", finished=False), {"finished": False}, KEPT),
        (row("A man plays."), {"most_words": 2}, "most words"),
        (row("A man plays."), {"most_words": 3}, KEPT),
    ],
)
def test_filters_of_queries_and_of_form(one, changes, reason):
    assert verdict(one, Filtering(**changes)) == reason


def test_the_share_that_is_copied_by_hand():
    assert copied_share("the guitar on the stage", SOURCE) == 4 / 5
    assert copied_share("The stage", SOURCE) == 1
    assert copied_share("music", SOURCE) == 0
    assert copied_share("?", SOURCE) == 0


@given(st.lists(st.sampled_from("abc"), max_size=7), st.lists(st.sampled_from("abc"), max_size=7))
def test_the_longest_copied_run_is_that_of_all_runs(text, source):
    runs = [text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1)]
    shared = [run for run in runs if any(source[at : at + len(run)] == run for at in range(len(source)))]
    longest = max(map(len, shared), default=0)
    assert copied_share(" ".join(text), " ".join(source)) == (longest / len(text) if text else 0)


def test_resemblance_by_hand():
    assert resemblance("abcdef", "ABCDEF") == 1
    assert resemblance("abcdef", "abcdeg") == 1 / 3  # abcde, bcdef; abcde, bcdeg
    assert resemblance("ab", "cd") == 0


def test_nearly_equal_candidates_are_kept_once():
    rows = [row("A man plays the guitar."), row("A man plays the guitar"), row("Somebody makes music.")]
    assert verdicts(rows, Filtering()) == [KEPT, "near-duplicate", KEPT]
    assert verdicts(rows, Filtering(near_duplicates=1)) == [KEPT] * 3


@pytest.mark.parametrize(
    ("text", "source", "same"),
    [
        ("Wie lange gilt die Garantie für das Gerät?", "Die Garantie für das Gerät gilt zwei Jahre ab dem Kauf.", True),
        (
            "How long does the warranty for the device last?",
            "Die Garantie für das Gerät gilt zwei Jahre ab dem Kauf.",
            False,
        ),
        ("warranty device", "Die Garantie für das Gerät gilt zwei Jahre ab dem Kauf.", True),  # too short to tell
        ("保修期有多长时间？", "该设备自购买之日起保修两年。", True),
    ],
)
def test_the_language_of_a_text_and_its_source(text, source, same):
    assert same_language(text, source) == same


def test_the_first_filter_speaks():
    strict = Filtering(source_words=99, words=99, substring=True)
    assert verdict(row("", 0.1), strict) == "empty"
    assert verdict(row(SOURCE, 0.1), strict) == "equal"
    assert verdict(row("a guitar?", 0.1), strict) == "score"
    assert verdict(row("a guitar?"), strict) == "source words"
    assert verdict(row("a guitar?"), strict.model_copy(update={"source_words": 0})) == "words"


def official(source, text, score):
    """The official code's conditions on one side of a triplet, in its own order."""
    if score < 0.9 or len(source.split()) < 8 or len(text.split()) < 5:
        return False
    return not (text[:-1] in source or source[:-1] in text)


WORDS = st.lists(st.sampled_from(["a", "man", "is", "playing", "guitar", "."]), min_size=1, max_size=12).map(" ".join)


@given(WORDS, WORDS, st.sampled_from([0.0, 0.5, 0.899, 0.9, 1.0]))
def test_the_preset_decides_as_the_official_code(source, text, score):
    kept = verdict(row(text, score, source), PRESETS["official-code"]) == KEPT
    assert kept == official(source, text, score)


def test_the_papers_preset_looks_at_the_score_alone():
    assert verdict(row(SOURCE), PRESETS["paper"]) == KEPT
    assert verdict(row("x", 0.9), PRESETS["paper"]) == KEPT
    assert verdict(row("x", 0.89), PRESETS["paper"]) == "score"


def test_equal_candidates_of_a_kind_are_kept_once():
    rows = [row("x", 0.2), row("x", 0.95), row("y"), row("x", 0.99), row("x", kind="contradiction")]
    assert verdicts(rows, Filtering()) == ["score", KEPT, KEPT, "repeated", KEPT]


@given(st.lists(st.tuples(WORDS, st.floats(0, 1)), max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_a_lower_threshold_never_loses_a_text(candidates, one, other):
    rows = [row(text, score) for text, score in candidates]
    kept = [
        {
            text
            for (text, _), why in zip(
                candidates, verdicts(rows, Filtering(threshold=at, near_duplicates=1)), strict=True
            )
            if why == KEPT
        }
        for at in sorted((one, other))
    ]
    assert kept[1] <= kept[0]
    assert {*verdicts(rows, OPEN)} <= {KEPT, *REASONS}


def test_settings_out_of_range_are_refused():
    for wrong in ({"threshold": 1.1}, {"words": -1}, {"alpha": 0.9}):
        with pytest.raises(ValidationError):
            Filtering(**wrong)
