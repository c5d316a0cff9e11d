"""Every writer keeps the contract: one answer per source, in order, with what it cost."""

import numpy as np
import pytest

from sentloom.writing.causal import Causal
from sentloom.writing.endpoint import Endpoint, EndpointOptions
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import TransformersWriter
from sentloom.writing.writer import KINDS, SourceText, prompts_for
from tests.writing.chat_server import chat_server
from tests.writing.small_causal import build_small_causal

SAMPLING = Sampling(length=5)
SOURCES = [SourceText(0, "a man sleeps"), SourceText(4, ""), SourceText(7, "two dogs run\nin the park", 1)]


@pytest.fixture(params=["text-to-text", "causal", "endpoint"])
def one_writer(request, tmp_path, writer_folder):
    if request.param == "endpoint":
        with chat_server() as server:
            yield Endpoint(EndpointOptions(server.url, "small"), SAMPLING, tmp_path)
    elif request.param == "causal":
        yield TransformersWriter(Causal.load(build_small_causal(tmp_path / "model")), SAMPLING)
    else:
        yield TransformersWriter(request.getfixturevalue("writer"), SAMPLING)


def test_every_kind_is_written_and_judged(one_writer):
    for kind, prompts in prompts_for(KINDS, "English").items():
        for prompt in prompts:
            answers = one_writer.write(SOURCES, kind, prompt)
            assert len(answers) == 3
            assert all(answer.text == " ".join(answer.text.split()) for answer in answers)
            assert all(answer.tokens_read > 0 and 0 < answer.tokens_written <= 7 for answer in answers)
            assert one_writer.write(SOURCES, kind, prompt) == answers
    chances = one_writer.judge([("a man sleeps", "a man rests"), ("", "")])
    assert chances.shape == (2,)
    assert ((chances >= 0) & (chances <= 1)).all()
    assert one_writer.write([], "query", prompt) == []
    assert np.asarray(one_writer.judge([])).shape == (0,)
