"""`/v1/classify`: labels over HTTP."""

from dataclasses import replace

import numpy as np
import pytest

from sentloom.classify.classifier import Classifier, marks_of, save
from sentloom.classify.heads import Kind, Rows, Settings
from sentloom.classify.learning import Abstention, Choice, learn_from
from sentloom.search.vectors import normalised
from sentloom.serving.models import load_models
from tests.serving.asking import post

TEXTS, LABELS = ["A man plays.", "The dog sleeps.", "Prices rise."], ("music", "animals", "trade")


@pytest.fixture
def classifier(encoder):
    rows = Rows(normalised(encoder.encode(TEXTS)), marks_of([(label,) for label in LABELS], LABELS))
    choice = Choice(Settings(Kind.NEIGHBOURS, 1), abstention=Abstention(cosine=0.9))
    head, kept = learn_from(choice.settings, rows, several=False)
    return Classifier("topic", "text", LABELS, False, choice, head, kept)


@pytest.fixture
def service(make_service, classifier):
    service = make_service()
    service.models["small"] = replace(service.models["small"], classifiers=(classifier,))
    return service


def test_texts_get_the_labels_of_their_rows(service):
    answer = post(service, "/v1/classify", {"input": [*reversed(TEXTS)]})
    assert answer.status_code == 200
    body = answer.json()
    assert [row["label"] for row in body["data"]] == [*reversed(LABELS)]
    assert [row["index"] for row in body["data"]] == [0, 1, 2]
    assert not any(row["abstain"] for row in body["data"])
    assert all(0 < row["probability"] <= 1 for row in body["data"])
    assert body["usage"]["total_tokens"] > 0


def test_a_text_without_a_word_is_left_to_people(service):
    (row,) = post(service, "/v1/classify", {"input": " "}).json()["data"]
    assert row["abstain"]
    assert row["label"] in LABELS


def test_a_model_without_a_classifier_says_so(make_service):
    answer = post(make_service(), "/v1/classify", {"input": "A man plays."})
    assert answer.status_code == 404
    assert "has no classifier" in answer.json()["error"]["message"]


def test_an_unknown_column_names_the_others(service):
    answer = post(service, "/v1/classify", {"input": "A man plays.", "column": "size"})
    assert answer.status_code == 422
    assert "topic" in answer.json()["error"]["message"]
    assert post(service, "/v1/classify", {"input": "A man plays.", "column": "topic"}).status_code == 200


def test_classifiers_are_read_from_the_folder(encoder, classifier, tmp_path):
    encoder.save(tmp_path / "model")
    save([classifier], tmp_path / "model")
    (served,) = load_models([str(tmp_path / "model")])
    assert [own.column for own in served.classifiers] == ["topic"]
    np.testing.assert_allclose(served.classifiers[0].rows.vectors, classifier.rows.vectors, atol=1e-3)
