"""Search in the corpus, and its map."""

import numpy as np
import pytest

from sentloom.files import cache_folder
from sentloom.serving.corpus import MAPPED, Corpus, plane
from sentloom.serving.service import ServiceLimits
from tests.serving.asking import get, post

TEXTS = ["No one knows; it rains.", "Two dogs run across the snow.", "The train to Lisbon had left.", "Yes"]


def corpus_of(encoder, texts=TEXTS):
    return Corpus(texts, lambda row: f"line {row + 1}", {"small": encoder.encode(texts, role="document")})


def test_a_search_finds_the_nearest_texts_by_cosine(make_service, encoder):
    answer = post(make_service(corpus=corpus_of(encoder)), "/v1/search", {"query": [TEXTS[2], "dogs"], "k": 3})
    assert answer.status_code == 200
    first, second = answer.json()["data"]
    assert first[0] | {"score": None} == {"row": 2, "place": "line 3", "text": TEXTS[2], "score": None}
    assert first[0]["score"] == pytest.approx(1, abs=1e-5)
    cosines = encoder.similarity("dogs", TEXTS)
    assert [hit["row"] for hit in second] == np.argsort(-cosines)[:3].tolist()
    assert [hit["score"] for hit in second] == pytest.approx(np.sort(cosines)[::-1][:3], abs=1e-5)


def test_a_search_for_too_many_results_is_refused(make_service, encoder):
    service = make_service(corpus=corpus_of(encoder), limits=ServiceLimits(max_found=6))
    assert post(service, "/v1/search", {"query": ["a", "b"], "k": 3}).status_code == 200
    assert post(service, "/v1/search", {"query": ["a", "b", "c"], "k": 3}).status_code == 413


def test_without_a_corpus_a_search_says_how_to_give_one(make_service):
    answer = post(make_service(), "/v1/search", {"query": "a"})
    assert answer.status_code == 404
    assert "--corpus" in answer.json()["error"]["message"]


def test_the_plane_keeps_groups_apart():
    generator = np.random.default_rng(0)
    centres = np.eye(3, 16, dtype=np.float32)
    vectors = np.repeat(centres, 20, axis=0) + 0.05 * generator.standard_normal((60, 16)).astype(np.float32)
    points = plane(vectors).reshape(3, 20, 2)
    assert points.min() >= 0
    assert points.max() <= 1
    inside = max(np.linalg.norm(group - group.mean(axis=0), axis=1).max() for group in points)
    middles = points.mean(axis=1)
    assert min(np.linalg.norm(middles[a] - middles[b]) for a, b in [(0, 1), (0, 2), (1, 2)]) > inside


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_a_few_texts_have_places_too(count):
    points = plane(np.eye(count, 8, dtype=np.float32))
    assert points.shape == (count, 2)
    assert np.isfinite(points).all()


def test_a_map_is_computed_once_and_again_if_its_file_is_damaged(make_service, encoder):
    corpus = corpus_of(encoder)
    service = make_service(corpus=corpus)
    answer = get(service, "/v1/map?model=small").json()
    assert answer["rows"] == [0, 1, 2, 3]
    assert answer["texts"] == TEXTS
    (file,) = (cache_folder() / "maps").iterdir()
    np.save(file, np.full((4, 2), 0.25, np.float32))
    assert corpus.map_points("small").tolist() == [[0.25, 0.25]] * 4  # read, not computed
    file.write_bytes(b"damaged")
    np.testing.assert_allclose(corpus.map_points("small"), answer["points"], atol=1e-6)


def test_a_large_corpus_is_sampled_evenly():
    rows = Corpus(["x"] * 10_001, str, {}).mapped_rows()
    assert len(rows) == MAPPED
    assert (rows[0], rows[-1]) == (0, 10_000)
    assert set(np.diff(rows)) == {5, 6}
