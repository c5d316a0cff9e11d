import dataclasses

import pytest
import torch

from sentloom.errors import InputError
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import TransformersWriter, open_backend, writing_ids
from sentloom.writing.writer import SourceText
from tests.writing.asking import texts_for
from tests.writing.oracles import read_to_write, written

SAMPLING = Sampling(length=10, top_p=0.95, temperature=1.3)


@pytest.mark.parametrize("sampling", [SAMPLING, Sampling(length=10, greedy=True), Sampling(length=6, top_k=9)])
def test_texts_are_those_of_a_plain_loop(writer, asked, sampling):
    requests = asked[::6]
    texts = texts_for(TransformersWriter(writer, sampling), requests)
    assert texts == [written(writer, request, sampling) for request in requests]
    assert len(set(texts)) > 2


def test_batches_and_order_do_not_matter(writer, asked):
    requests = asked[::4]
    texts = texts_for(TransformersWriter(writer, SAMPLING, batch=64), requests)
    for batch in (1, 3):
        assert texts_for(TransformersWriter(writer, SAMPLING, batch), requests) == texts
    mixed = torch.randperm(len(requests), generator=torch.Generator().manual_seed(0)).tolist()
    assert texts_for(TransformersWriter(writer, SAMPLING, 7), [requests[i] for i in mixed]) == [texts[i] for i in mixed]


@pytest.mark.parametrize("change", [{"source": 99}, {"kind": "contradiction"}, {"candidate": 3}])
def test_a_text_is_decided_by_its_source_kind_and_number(writer, asked, change):
    backend = TransformersWriter(writer, SAMPLING)
    request = asked[0]
    assert texts_for(backend, [request]) != texts_for(backend, [dataclasses.replace(request, **change)])
    assert texts_for(backend, [request]) == texts_for(backend, [request])


def test_the_seed_decides_and_chance_elsewhere_is_left_alone(writer, asked):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    texts = texts_for(TransformersWriter(writer, SAMPLING), asked)
    assert torch.equal(torch.rand(3), expected)
    assert texts != texts_for(TransformersWriter(writer, SAMPLING.model_copy(update={"seed": 2})), asked)


def test_a_model_that_was_trained_writes_without_dropout(writer, asked):
    texts = texts_for(TransformersWriter(writer, SAMPLING), asked[:8])
    writer.train()
    assert texts_for(TransformersWriter(writer, SAMPLING), asked[:8]) == texts


def test_a_text_of_one_token(writer, asked):
    words = {writer.text_of([i]) for i in range(len(writer.tokenizer))}
    assert set(texts_for(TransformersWriter(writer, Sampling(length=1)), asked)) <= words


def test_the_model_reads_what_it_learned_to_read(writer, asked):
    for kind in ("entailment", "contradiction"):
        sources = [
            SourceText(request.source, request.text, request.candidate) for request in asked if request.kind == kind
        ]
        read = writing_ids(writer, sources, writer.wording.prompt(kind))
        assert read == [read_to_write(writer, request.text, kind) for request in sources]


def test_nothing_asked_nothing_written(writer):
    assert texts_for(TransformersWriter(writer, SAMPLING), []) == []


def test_backends_have_names(writer, tmp_path):
    assert open_backend("transformers", writer, SAMPLING, tmp_path).name == "transformers"
    with pytest.raises(InputError, match="one of transformers, ctranslate2, ctranslate2-int8"):
        open_backend("onnx", writer, SAMPLING, tmp_path)
