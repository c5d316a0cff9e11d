"""The whole search under the gate: codes that only words find, a base that wins by words, and what is written."""

import json
import random

import pytest
from sentence_transformers import SentenceTransformer

from sentloom import Encoder, fit
from sentloom.encoder.system import VECTORS_ALONE
from sentloom.fitting.result import Addition, FitResult, SystemResult
from sentloom.fitting.system import DEPTHS, depth_in_time, system_of
from tests.fitting import small_base
from tests.search.small_cross_encoders import build_cross_encoder


def coded(path, count=150):
    """Questions with a code, and answers in which nothing but the code says which is right."""
    draw, rows = random.Random(5), []
    for number in draw.sample(range(1000, 10_000), count):
        asked, said = (" ".join(draw.sample(words, 4)) for words in (small_base.WORDS, small_base.FORMS))
        rows.append((f"{asked} pq-{number}", f"{said} pq-{number}"))
    return small_base.write_rows(path, "anchor positive", rows)


@pytest.fixture(scope="module")
def fitted(base, tmp_path_factory):
    """A fit that learns nothing in so few steps, with a re-ranker that knows nothing."""
    folder = tmp_path_factory.mktemp("coded")
    reranker = build_cross_encoder(folder / "reranker")
    done = fit(coded(folder / "parts.tsv"), folder / "model", base=base, budget="10steps", reranker=reranker)
    return done, folder


def test_a_base_whose_search_is_better_with_words_is_written_and_is_better(fitted):
    done, folder = fitted
    system = done.result.system
    assert done.verdict == "better"
    assert system.of_base
    assert system.fusion.weight == system.fusion.chosen > 0
    assert system.fusion.total.low > 0
    assert done.result.total == system.fusion.total
    assert done.reason.startswith("No trained encoder is better than its base, but a search by vectors and words")
    assert not any(run.verdict == "won" for run in done.result.runs)
    recorded = json.loads((folder / "model" / "sentloom.json").read_text())["system"]["fusion"]
    assert recorded["weight"] == system.fusion.weight
    assert recorded["interval"] == list(system.fusion.interval)
    report = json.loads((folder / "model.fit" / "report.json").read_text())["system"]["fusion"]
    assert (report["weight"], report["gain"]) == (recorded["weight"], recorded["gain"])
    assert "unchanged, with a search that also looks at words" in (folder / "model" / "README.md").read_text()
    assert "BM25" in (folder / "model.fit" / "report.html").read_text()
    assert FitResult.read(folder / "model.fit" / "report.json").system == system


def test_the_written_model_finds_codes_and_is_a_plain_model_for_others(fitted, base):
    _, folder = fitted
    encoder = Encoder.load(folder / "model")
    assert encoder.fingerprint() == Encoder.load(base).fingerprint()
    texts = [f"{form} pq-{number}" for number, form in enumerate(small_base.FORMS, 5000)]
    assert encoder.search("pq-5041", texts, k=1)[0].row == 41
    vectors = SentenceTransformer(str(folder / "model")).encode(texts[:1])
    assert vectors == pytest.approx(encoder.encode(texts[:1]), abs=1e-5)


def test_a_re_ranker_that_knows_nothing_gets_no_weight(fitted):
    done, _ = fitted
    assert done.result.system.reranking.weight == 0
    assert done.encoder.system.reranking.weight == 0


def test_a_fit_without_labels_has_no_system(base, tmp_path):
    done = fit(small_base.prose(tmp_path / "raw.txt", 150), tmp_path / "model", base=base, budget="2steps", force=True)
    assert done.result.system is None
    assert done.encoder.system == VECTORS_ALONE


def test_a_re_ranker_reads_what_there_is_time_for():
    class Set:
        queries, documents = ["q"], ["d"] * 64

    def slow(pairs):
        import time

        time.sleep(0.004 * len(pairs))

    assert depth_in_time(lambda pairs: None, Set) == DEPTHS[-1]
    assert depth_in_time(slow, Set) == 30


def test_a_part_that_was_not_shown_to_be_better_has_no_weight_in_the_system():
    system = system_of(SystemResult("german", Addition(0.0, 0.4)))
    assert str(system) == "vectors"
    assert system.recorded()["fusion"]["weight"] == 0
