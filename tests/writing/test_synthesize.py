"""Synthesis from end to end with a small T5: resume, growth, other settings, and what is refused."""

import shutil

import pytest
import torch
from pydantic import ValidationError

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.writing.filters import Filtering
from sentloom.writing.generator import TransformersBackend, WritingRequest
from sentloom.writing.ledger import Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, synthesize
from sentloom.writing.text_to_text import TextToText
from tests.small_data import build_dataset
from tests.writing.ledgers import derived, raw_texts, rows_of
from tests.writing.small_synthesizers import build_small_t5

QUICK = {"execution": Execution(block=4), "show_progress": False}
TWO = Sampling(candidates=2, max_tokens=8)
LOOSE = Filtering(threshold=0)  # a model of random weights is sure of one verdict


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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


def test_the_rows_are_what_the_backend_writes_and_judges(whole, model):
    loaded = TextToText.load(model)
    backend = TransformersBackend(loaded, TWO)
    rows = rows_of(whole)
    assert len(rows) == 18 * 2 * 2
    asked = [WritingRequest(one["source"], one["source_text"], one["kind"], one["candidate"]) for one in rows]
    assert backend.write(asked) == [one["text"] for one in rows]  # in one batch or in blocks of four
    true = backend.judge([(one["source_text"], one["text"]) for one in rows])
    wanted = [t if one["kind"] == "entailment" else 1 - t for t, one in zip(true, rows, strict=True)]
    assert [one["score"] for one in rows] == pytest.approx(wanted, abs=1e-5)
    assert {one["model"] for one in rows} == {loaded.sha256}


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
    texts = [[sample.text for sample in one.kinds["entailment"].kept_samples] for one in (first, again)]
    assert texts[0] == texts[1]
    assert rows_of(tmp_path) == rows_of(whole)


def test_a_complete_ledger_asks_the_model_for_nothing(whole, model, raw, monkeypatch):
    def fails(*arguments):
        raise AssertionError("the model was run")

    monkeypatch.setattr(TransformersBackend, "write", fails)
    monkeypatch.setattr(TransformersBackend, "judge", fails)
    kept = [synthesize(raw, model, whole, TWO, Filtering(threshold=at), **QUICK).triplets for at in (1.0, 0.5, 0.0)]
    assert kept == sorted(kept)
    assert kept[0] < kept[2]
    synthesize(raw, model, whole, TWO, LOOSE, **QUICK)


def test_another_model_is_refused(whole, raw, tmp_path):
    other = build_small_t5(tmp_path / "other", width=64)
    with pytest.raises(InputError, match=r"a ledger made with model [0-9a-f]{12}\.\.\. \(now [0-9a-f]{12}\.\.\.\)\."):
        synthesize(raw, other, whole, TWO, LOOSE, **QUICK)


def test_other_sampling_is_refused(whole, model, raw):
    with pytest.raises(InputError, match=r"sampling.seed 1 \(now 5\)"):
        synthesize(raw, model, whole, Sampling(candidates=2, max_tokens=8, seed=5), LOOSE, **QUICK)


def test_the_contrastive_data_reads_back(whole):
    data = read(whole / "triplets.parquet")
    assert data.shape is Shape.TRIPLETS
    assert len(data) > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"block": 0}, "block"),
        ({"workers": 2}, "2 workers with the engine local"),
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
