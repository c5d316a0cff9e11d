"""Search in the corpus."""

import numpy as np
import pytest

from sentloom.encoder.system import Fusion, System
from sentloom.search.system import Index
from sentloom.serving.models import Corpus
from sentloom.serving.service import ServiceLimits
from tests.serving.asking import post

TEXTS = ["No one knows; it rains.", "Two dogs run across the snow.", "The train to Lisbon had left.", "Yes"]


def corpus_of(encoder, texts=TEXTS):
    return Corpus(
        texts,
        lambda row: f"line {row + 1}",
        {"small": Index(texts, encoder.encode(texts, role="document"), encoder.system)},
    )


def test_a_search_finds_the_nearest_texts_by_cosine(make_service, encoder):
    answer = post(make_service(corpus=corpus_of(encoder)), "/v1/search", {"query": [TEXTS[2], "dogs"], "k": 3})
    assert answer.status_code == 200
    first, second = answer.json()["data"]
    assert first[0] | {"score": None} == {"row": 2, "place": "line 3", "text": TEXTS[2], "score": None}
    assert first[0]["score"] == pytest.approx(1, abs=1e-5)
    cosines = encoder.similarity("dogs", TEXTS)
    assert [hit["row"] for hit in second] == np.argsort(-cosines)[:3].tolist()
    assert [hit["score"] for hit in second] == pytest.approx(np.sort(cosines)[::-1][:3], abs=1e-5)


def test_a_search_is_the_system_of_the_model(make_service, encoder):
    index = Index(TEXTS, encoder.encode(TEXTS, role="document"), System(Fusion(1.0)))
    corpus = Corpus(TEXTS, lambda row: f"line {row + 1}", {"small": index})
    answer = post(make_service(corpus=corpus), "/v1/search", {"query": "SNOW!", "k": 1})
    assert [(hit["row"], hit["score"]) for hit in answer.json()["data"][0]] == [(1, 1.0)]


def test_a_search_for_too_many_results_is_refused(make_service, encoder):
    service = make_service(corpus=corpus_of(encoder), limits=ServiceLimits(max_found=6))
    assert post(service, "/v1/search", {"query": ["a", "b"], "k": 3}).status_code == 200
    assert post(service, "/v1/search", {"query": ["a", "b", "c"], "k": 3}).status_code == 413


def test_without_a_corpus_a_search_says_how_to_give_one(make_service):
    answer = post(make_service(), "/v1/search", {"query": "a"})
    assert answer.status_code == 404
    assert "--corpus" in answer.json()["error"]["message"]
