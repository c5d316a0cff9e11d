"""Scores of candidates: each judge scores its own kinds, a cross-encoder only queries, and old scores are not asked again."""

import numpy as np
import pytest

from sentloom.errors import InputError
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.writing.filters import Filtering
from sentloom.writing.judges import QueryJudges, RoundTrip, open_query_judges, score_all
from sentloom.writing.ledger import Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, WritingTask, synthesize
from sentloom.writing.triplets import draw
from sentloom.writing.writer import prompts_for
from tests.search.small_cross_encoders import build_cross_encoder
from tests.writing.ledgers import Hashes, plan_of, raw_texts, rows_of
from tests.writing.small_causal import build_small_causal

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["The canteen opens at noon.", "Refunds are paid within ten days."]
OPEN = Filtering(round_trip=0, finished=False, copied=1, language=False, near_duplicates=1, cross_encoder=-1e9)
SHORT = Sampling(length=6, candidates=2)


def lengths(pairs):
    """A cross-encoder that counts the characters of the query."""
    return np.array([len(query) - len(passage) / 100 for query, passage in pairs], np.float32)


def test_every_kind_has_its_judges():
    kinds = ["entailment", "contradiction", "query", "paraphrase"]
    pairs = [(TEXTS[0], "a"), (TEXTS[0], "b"), (TEXTS[1], "when are refunds paid"), (TEXTS[1], "d")]
    scores = score_all(kinds, pairs, Hashes(), QueryJudges(RoundTrip(TEXTS, None), lengths))
    true, both = Hashes().judge(pairs), Hashes().judge([pair[::-1] for pair in pairs])
    assert scores.score.tolist() == [true[0], 1 - true[1], 1.0, min(true[3], both[3])]
    assert scores.bm25_rank.tolist() == [0, 0, 1, 0]
    assert scores.encoder_rank.tolist() == [0, 0, 0, 0]
    assert scores.cross_encoder.tolist() == pytest.approx([np.nan, np.nan, 21 - 0.33, np.nan], nan_ok=True)


def test_without_a_cross_encoder_there_are_no_scores_of_it():
    scores = score_all(["query"], [(TEXTS[0], "noon")], Hashes(), QueryJudges(RoundTrip(TEXTS, None)))
    assert (scores.score.tolist(), np.isnan(scores.cross_encoder).tolist()) == ([1.0], [True])


def test_no_judge_is_opened_without_queries():
    plan = plan_of(raw_texts(3))
    assert open_query_judges(plan, lambda: TEXTS, "no such encoder", "no such teacher") is None
    asked = plan_of(raw_texts(3), prompts=prompts_for(("query",), None))
    assert open_query_judges(asked, lambda: TEXTS, "none", None).teacher is None


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A ledger of queries and paraphrases with the scores of a small cross-encoder."""
    folder = tmp_path_factory.mktemp("judged")
    writer, teacher = build_small_causal(folder / "causal"), build_cross_encoder(folder / "teacher")
    runs = Execution(block=4, encoder="none", teacher=str(teacher))
    synthesize(
        raw_texts(6), writer, folder / "ledger", SHORT, OPEN, runs,
        task=WritingTask(("query", "paraphrase")), show_progress=False,
    )  # fmt: skip
    return folder


def test_the_ledger_has_the_scores_of_the_cross_encoder(judged):
    rows = rows_of(judged / "ledger")
    model = CrossEncoder.load(judged / "teacher")
    queries = [row for row in rows if row["kind"] == "query"]
    expected = model.score([(row["text"], row["source_text"]) for row in queries])
    assert [row["cross_encoder"] for row in queries] == pytest.approx(expected.tolist(), abs=1e-4)
    assert {row["cross_encoder"] for row in rows if row["kind"] != "query"} == {None}
    assert Ledger.open(judged / "ledger").plan.teacher == model.identity


def test_a_new_threshold_needs_no_model(judged):
    scores = [row["cross_encoder"] for row in rows_of(judged / "ledger") if row["kind"] == "query" and row["text"]]
    middle = float(np.median(scores))
    ledger = Ledger.open(judged / "ledger")
    kept = [
        draw(ledger, OPEN.model_copy(update={"cross_encoder": at}), show_progress=False).kinds["query"]
        for at in (-1e9, middle, 1e9)
    ]
    assert kept[0].dropped.get("cross-encoder", 0) == 0
    assert kept[1].dropped["cross-encoder"] == sum(score < middle for score in scores)
    assert kept[2].dropped["cross-encoder"] == len(scores)
    assert sum(kept[0].relevance.values()) == 12


def test_another_cross_encoder_is_another_plan(judged, tmp_path):
    runs = Execution(block=4, encoder="none", teacher=str(build_cross_encoder(tmp_path / "other", seed=1)))
    with pytest.raises(InputError, match=r"the ledger was made with teacher"):
        synthesize(
            raw_texts(6), judged / "causal", judged / "ledger", SHORT, OPEN, runs,
            task=WritingTask(("query", "paraphrase")), show_progress=False,
        )  # fmt: skip


def test_a_threshold_without_a_cross_encoder_is_refused_before_anything_is_written(judged, tmp_path):
    runs = Execution(encoder="none")
    with pytest.raises(InputError, match="needs scores of a cross-encoder"):
        synthesize(
            raw_texts(6), judged / "causal", tmp_path / "ledger", SHORT, OPEN, runs,
            task=WritingTask(("query",)), show_progress=False,
        )  # fmt: skip
    assert not (tmp_path / "ledger").exists()
