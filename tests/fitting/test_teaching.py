"""A teacher teaches only if it ranks the validation queries better than the base."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from sentloom.encoder import Encoder
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting import bases as teaching
from sentloom.fitting.bases import find_teacher
from sentloom.fitting.prepare import prepare_inputs
from sentloom.fitting.request import Budget
from sentloom.search.cross_encoder import CrossEncoder
from tests.fitting.small_base import FORMS, WORDS, build_base, pairs
from tests.fitting.test_request import request
from tests.search.small_cross_encoders import build_cross_encoder

STEPS = Budget(None, 400)


@pytest.fixture
def base(tmp_path):
    return Encoder.load(build_base(tmp_path))


@pytest.fixture
def tasks(tmp_path, base):
    names = {"data": (str(pairs(tmp_path / "pairs.tsv", 400)),), "base": (str(tmp_path / "base"),)}
    asked = request(output=tmp_path / "model", budget="400steps", **names)
    prepared = prepare_inputs(asked, [base], lambda line: None)
    return prepared.deciding(prepared.validation)


def knowing() -> CrossEncoder:
    """A cross-encoder that knows the second form of every word: its score is the number of words in common."""
    vocabulary = {word: number for number, word in enumerate([*WORDS, *FORMS, "?"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[])

    def logits(arrays):
        words, second = arrays["input_ids"] % len(WORDS), arrays["token_type_ids"] == 1
        rows = zip(words, second, strict=True)
        return np.array([len({*row[side]} & {*row[~side]}) for row, side in rows], np.float32)

    return CrossEncoder(tokenizer, 0, logits, 1, 1, "knowing")


def test_one_that_knows_more_than_the_base_teaches(tasks, base, tmp_path, monkeypatch):
    monkeypatch.setattr(CrossEncoder, "load", classmethod(lambda cls, name: knowing()))
    said = []
    teacher = find_teacher("knowing", tasks, base, open_memory(tmp_path / "cache"), STEPS, said.append)
    assert teacher.why_not is None, said
    assert said[0] == "\nTesting the teacher knowing ..."
    assert "re-ranked: +" in said[1]


def test_one_that_knows_nothing_does_not(tasks, base, tmp_path):
    name = str(build_cross_encoder(tmp_path / "teacher"))
    teacher = find_teacher(name, tasks, base, open_memory(tmp_path / "cache"), STEPS)
    assert teacher.name == name
    assert teacher.why_not.startswith("the teacher is not shown to rank better than the base: nDCG@10")


def test_what_cannot_be_tested_does_not_teach(tasks, base, tmp_path):
    memory, name = open_memory(tmp_path / "cache"), str(build_cross_encoder(tmp_path / "teacher"))
    short = find_teacher(name, tasks, base, memory, Budget(0.001, None))
    assert short.why_not == "the budget has time to test the teacher on 0 queries, and it needs 40"
    without = find_teacher(name, [], base, memory, STEPS)
    assert without.why_not.startswith("there are no validation queries")
    missing = find_teacher("reranker", tasks, base, memory, STEPS)  # the cache of a test is empty
    assert missing.why_not == "it is not on this machine; sentloom models get reranker"


def test_the_number_of_queries_follows_the_budget(tasks):
    searched = tasks[0].searched
    model = knowing()
    assert teaching._affordable_queries(model, searched, STEPS) == 150
    assert teaching._affordable_queries(model, searched, Budget(1e9, None)) == 150
    assert teaching._affordable_queries(model, searched, Budget(1e-9, None)) == 0
