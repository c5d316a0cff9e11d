"""Synthesis from end to end with a small T5: resume, growth, other settings, and what is refused."""

import shutil

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.device import running_on
from sentloom.errors import InputError
from sentloom.writing.filters import Filtering
from sentloom.writing.judges import RoundTrip, judge
from sentloom.writing.ledger import Ledger
from sentloom.writing.models import open_model
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, WritingTask, language_of, synthesize, writing_precision
from sentloom.writing.text_to_text import TextToText, TransformersWriter
from tests.small_data import build_dataset
from tests.writing.asking import Request, texts_for
from tests.writing.ledgers import derived, raw_texts, rows_of
from tests.writing.small_causal import build_small_causal
from tests.writing.small_synthesizers import build_small_t5

QUICK = {"execution": Execution(block=4), "show_progress": False}
TWO = Sampling(candidates=2, length=8)
LOOSE = Filtering(threshold=0, finished=False)  # random weights: texts do not end, verdicts are all one


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("models") / "t5")


@pytest.fixture(scope="module")
def raw():
    return raw_texts(18)


@pytest.fixture(scope="module")
def whole(model, raw, tmp_path_factory):
    """A ledger that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "ledger"
    synthesize(raw, model, folder, TWO, LOOSE, **QUICK)
    return folder


@pytest.mark.parametrize("fast", [True, False])
def test_the_embedded_writer_runs_in_bf16_where_the_cpu_computes_in_it(monkeypatch, fast):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": fast})
    with running_on("cpu", None):
        assert writing_precision("smollm2", "transformers") == ("bf16" if fast else "fp32")
        assert writing_precision("smollm2", "ctranslate2") == "fp32"
        assert writing_precision("some/folder", "transformers") == "fp32"
    with running_on("cpu", "fp32"):
        assert writing_precision("smollm2", "transformers") == "fp32"
    with running_on("cpu", "bf16"):
        assert writing_precision("some/folder", "transformers") == "bf16"


def test_the_rows_are_what_the_backend_writes_and_judges(whole, model):
    loaded = TextToText.load(model)
    backend = TransformersWriter(loaded, TWO)
    rows = rows_of(whole)
    assert len(rows) == 18 * 2 * 2
    asked = [Request(row["source"], row["source_text"], row["kind"], row["candidate"]) for row in rows]
    assert texts_for(backend, asked) == [row["text"] for row in rows]  # in one batch or in blocks of four
    true = backend.judge([(row["source_text"], row["text"]) for row in rows])
    expected = [t if row["kind"] == "entailment" else 1 - t for t, row in zip(true, rows, strict=True)]
    assert [row["score"] for row in rows] == pytest.approx(expected, abs=1e-5)
    assert {row["writer"] for row in rows} == {loaded.sha256}


def test_a_run_that_stopped_goes_on(whole, model, raw, tmp_path, monkeypatch):
    write, calls = Ledger.write, []

    def stops(self, number, table):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(number)
        write(self, number, table)

    monkeypatch.setattr(Ledger, "write", stops)
    with pytest.raises(KeyboardInterrupt):
        synthesize(raw, model, tmp_path, TWO, LOOSE, **QUICK)
    assert not (tmp_path / "triplets.parquet").exists()
    monkeypatch.setattr(Ledger, "write", write)
    assert calls == [0, 1]
    synthesize(raw, model, tmp_path, TWO, LOOSE, **QUICK)
    assert rows_of(tmp_path) == rows_of(whole)
    assert derived(tmp_path) == derived(whole)


def test_a_damaged_block_is_made_again(whole, model, raw, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "ledger")
    path = folder / "blocks/000001.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    synthesize(raw, model, folder, TWO, LOOSE, **QUICK)
    assert rows_of(folder) == rows_of(whole)


def test_fewer_rows_then_more(whole, model, raw, tmp_path):
    first = synthesize(raw, model, tmp_path, TWO, LOOSE, rows=6, **QUICK)
    assert first.sources == 6
    assert len(rows_of(tmp_path)) == 24
    last = synthesize(raw, model, tmp_path, TWO, LOOSE, rows=1000, **QUICK)
    assert last.sources == 18
    assert rows_of(tmp_path) == rows_of(whole)
    assert derived(tmp_path) == derived(whole)
    again = synthesize(raw, model, tmp_path, TWO, LOOSE, rows=6, **QUICK)
    assert (again.sources, again.triplets, again.pairs) == (first.sources, first.triplets, first.pairs)
    texts = [[sample.text for sample in summary.kinds["entailment"].kept_samples] for summary in (first, again)]
    assert texts[0] == texts[1]
    assert rows_of(tmp_path) == rows_of(whole)


def test_a_complete_ledger_asks_the_model_for_nothing(whole, model, raw, monkeypatch):
    def fails(*arguments):
        raise AssertionError("the model was run")

    monkeypatch.setattr(TransformersWriter, "write", fails)
    monkeypatch.setattr(TransformersWriter, "judge", fails)
    kept = [synthesize(raw, model, whole, TWO, Filtering(threshold=at), **QUICK).triplets for at in (1.0, 0.5, 0.0)]
    assert kept == sorted(kept)
    assert kept[0] < kept[2]
    synthesize(raw, model, whole, TWO, LOOSE, **QUICK)


def test_another_model_is_refused(whole, raw, tmp_path):
    other = build_small_t5(tmp_path / "other", width=64)
    with pytest.raises(
        InputError, match=r"the ledger was made with writer [0-9a-f]{12}\.\.\. \(now [0-9a-f]{12}\.\.\.\)\."
    ):
        synthesize(raw, other, whole, TWO, LOOSE, **QUICK)


def test_other_sampling_is_refused(whole, model, raw):
    with pytest.raises(InputError, match=r"sampling.seed 1 \(now 5\)"):
        synthesize(raw, model, whole, Sampling(candidates=2, length=8, seed=5), LOOSE, **QUICK)


def test_the_contrastive_data_reads_back(whole):
    data = read(whole / "triplets.parquet")
    assert data.shape is Shape.TRIPLETS
    assert len(data) > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"block": 0}, "block"),
        ({"workers": 2}, "2 workers need the engine ray"),
        ({"engine": "spark"}, "'local' or 'ray'"),
        ({"backend": "onnx"}, "'transformers', 'ctranslate2'"),
    ],
)
def test_an_impossible_execution_is_refused(changes, said):
    with pytest.raises(ValidationError, match=said):
        Execution(**changes)


def test_only_texts_are_taken(model, tmp_path):
    pairs = build_dataset(Shape.PAIRS, [("a", "b")])
    with pytest.raises(InputError, match=r"pairs\. Expected texts"):
        synthesize(pairs, model, tmp_path / "ledger", **QUICK)
    assert not (tmp_path / "ledger").exists()


CAUSAL = Execution(block=4, encoder="none")
SHORT_TEXTS = Sampling(candidates=2, length=6)


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return build_small_causal(tmp_path_factory.mktemp("models") / "causal")


def test_queries_of_all_styles_with_ranks(causal, raw, tmp_path):
    by = Filtering(round_trip=0, finished=False, copied=1, language=False, near_duplicates=1)
    summary = synthesize(
        raw, causal, tmp_path, SHORT_TEXTS, by, CAUSAL, task=WritingTask(("query",)), show_progress=False
    )
    rows = rows_of(tmp_path)
    assert len(rows) == 18 * 2
    styles = ["question", "keywords", "title", "statement"]
    assert [row["style"] for row in rows] == [styles[(row["source"] + row["candidate"]) % 4] for row in rows]
    trip = RoundTrip(raw.column("text").to_pylist(), None)
    ranks = trip.find([row["text"] for row in rows], [row["source_text"] for row in rows])
    assert [row["bm25_rank"] for row in rows] == ranks.bm25.tolist()
    assert [row["score"] for row in rows] == [1 / rank if rank else 0 for rank in ranks.fused.tolist()]
    assert {row["encoder_rank"] for row in rows} == {0}
    assert len(set(ranks.fused.tolist())) > 2
    assert (summary.triplets, summary.pairs) == (0, summary.kinds["query"].kept)
    middle = int(np.median([rank for rank in ranks.fused if rank]))
    by = by.model_copy(update={"round_trip": middle})
    strict = synthesize(
        raw, causal, tmp_path, SHORT_TEXTS, by, CAUSAL, task=WritingTask(("query",)), show_progress=False
    )
    near = {(row["source"], row["text"]) for row in rows if row["text"] and row["score"] >= 1 / middle}
    assert 0 < strict.pairs == len(near) < summary.pairs


def test_a_paraphrase_must_follow_both_ways(causal, raw, tmp_path):
    synthesize(
        raw,
        causal,
        tmp_path,
        SHORT_TEXTS,
        LOOSE,
        CAUSAL,
        task=WritingTask(("paraphrase",)),
        rows=6,
        show_progress=False,
    )
    rows = rows_of(tmp_path)
    model = open_model(causal)
    there = judge(model, [(row["source_text"], row["text"]) for row in rows])
    back = judge(model, [(row["text"], row["source_text"]) for row in rows])
    assert [row["score"] for row in rows] == pytest.approx(np.minimum(there, back), abs=1e-5)
    pairs = read(tmp_path / "pairs.parquet")
    assert {pair["anchor"] for pair in pairs} <= {row["source_text"] for row in rows}


def test_all_kinds_in_one_ledger_and_a_killed_run_resumes(causal, raw, tmp_path):
    task = WritingTask(("query", "entailment", "contradiction", "paraphrase"))
    one = synthesize(raw, causal, tmp_path / "one", SHORT_TEXTS, LOOSE, CAUSAL, task=task, rows=6, show_progress=False)
    assert list(one.kinds) == ["entailment", "contradiction", "query", "paraphrase"]
    for block in (4, 6):
        synthesize(
            raw, causal, tmp_path / "two", SHORT_TEXTS, LOOSE, CAUSAL, task=task, rows=block, show_progress=False
        )
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")
    assert derived(tmp_path / "one") == derived(tmp_path / "two")


def test_an_encoder_searches_for_the_sources_of_queries(causal, raw, tmp_path):
    task, runs = WritingTask(("query",)), Execution(block=4)
    synthesize(raw, causal, tmp_path, Sampling(length=6), LOOSE, runs, task=task, rows=4, show_progress=False)
    rows = rows_of(tmp_path)
    assert all(1 <= row["encoder_rank"] <= 18 for row in rows)
    assert Ledger.open(tmp_path).plan.encoder == Encoder.load("embedded").fingerprint()


def test_the_prompt_is_in_the_language_of_the_data(tmp_path):
    german = build_dataset(
        Shape.TEXTS, [(f"Die Garantie für das Gerät gilt seit dem Kauf {n} Jahre.",) for n in range(9)]
    )
    several = ["Where can I find the canteen?", "La cantina está en la planta baja.", "Das Büro ist heute geschlossen."]
    mixed = build_dataset(Shape.TEXTS, [(f"{text} {n}",) for n in range(9) for text in several])
    assert language_of(german) == "German"
    assert language_of(mixed) is None
