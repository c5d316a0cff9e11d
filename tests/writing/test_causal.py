"""Causal models: a shared prompt computed once, texts that leave the batch, judgements and losses as computed slowly."""

import dataclasses

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batches
from sentloom.errors import ModelError
from sentloom.lab.synthesizer import instances, losses
from sentloom.writing.causal import Causal
from sentloom.writing.judges import judge, judging_ids
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import TransformersWriter, writing_ids
from sentloom.writing.writer import KINDS, SourceText, Wording, Written, prompts_for
from tests.writing.oracles import limited, noise
from tests.writing.small_causal import SIZES, build_small_causal
from tests.writing.small_synthesizers import TRIPLETS, triplets

SAMPLING = Sampling(length=8, top_p=0.95, temperature=1.3)
SOURCES = [
    SourceText(row, " and ".join(TRIPLETS[7 * row + at][0] for at in range(1 + row % 3)), candidate)
    for row in range(5)
    for candidate in range(2)
]
QUESTION, KEYWORDS, *_ = prompts_for(KINDS, "English")["query"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_small_causal(tmp_path_factory.mktemp("causal") / "model")


@pytest.fixture(scope="module")
def causal(folder):
    return Causal.load(folder).eval()


@torch.no_grad()
def slowly_written(model, source, kind, prompt, sampling):
    """One text, the whole row again for every token."""
    before, after = prompt.around
    text = " ".join(source.text.split())
    ids = [token for part in (before, text, after) for token in model.bare([part])[0]]
    out = []
    name = (sampling.seed, source.row, KINDS.index(kind), source.candidate)
    while len(out) < sampling.length and (not out or out[-1] not in model.stops):
        logits = model.model(input_ids=torch.tensor([[*ids, *out]]), use_cache=False).logits[:, -1]
        kept = limited(logits, sampling)[0].tolist() if not sampling.greedy else logits[0].tolist()
        shaken = [0.0 if sampling.greedy else noise((*name, len(out)), word) for word in range(len(kept))]
        out.append(max(range(len(kept)), key=lambda word: kept[word] + shaken[word]))
    return Written(model.text_of(out), out[-1] in model.stops, len(ids), len(out))


@pytest.mark.parametrize(
    "family", [pytest.param(one, marks=() if one == "llama" else pytest.mark.long) for one in SIZES]
)
@pytest.mark.parametrize("sampling", [SAMPLING, Sampling(length=8, greedy=True)])
def test_texts_are_those_of_a_plain_loop(tmp_path, family, sampling):
    model = Causal.load(build_small_causal(tmp_path / "model", family)).eval()
    written = TransformersWriter(model, sampling, batch=3).write(SOURCES[:4], "query", QUESTION)
    expected = [slowly_written(model, source, "query", QUESTION, sampling) for source in SOURCES[:4]]
    assert written == expected


def test_rows_of_very_different_lengths_are_read_apart_and_written_together(causal):
    words = [1, 90, 30, 400, 5, 60, 2]  # of which at most 256 tokens are read
    sources = [
        SourceText(row, " ".join(TRIPLETS[0][0].split()[at % 5] for at in range(n))) for row, n in enumerate(words)
    ]
    sampling = Sampling(length=6, temperature=1.5)
    written = TransformersWriter(causal, sampling, batch=8).write(sources, "query", QUESTION)
    read = [answer.tokens_read for answer in written]
    assert max(read) - min(read) > 200
    for source, answer in zip(sources, written, strict=True):
        cut = dataclasses.replace(source, text=causal.tokenizer.decode(causal.sentences([source.text])[0][:256]))
        assert answer == slowly_written(causal, cut, "query", QUESTION, sampling)


def test_some_texts_end_and_leave_the_batch(causal):
    sources = [dataclasses.replace(one, candidate=10 * turn + one.candidate) for turn in range(8) for one in SOURCES]
    written = TransformersWriter(causal, Sampling(length=40, temperature=2.0), 16).write(sources, "query", QUESTION)
    assert {one.finished for one in written} == {True, False}
    assert all(one.tokens_written == 40 for one in written if not one.finished)
    assert len({one.tokens_written for one in written}) > 2


def test_batches_order_and_prompts_before_do_not_matter(causal):
    writer = TransformersWriter(causal, SAMPLING, batch=16)
    texts = writer.write(SOURCES, "query", QUESTION)
    assert len({answer.text for answer in texts}) > 5
    writer.write(SOURCES, "query", KEYWORDS)  # another shared beginning
    assert writer.write(SOURCES, "query", QUESTION) == texts
    assert TransformersWriter(causal, SAMPLING, batch=1).write(SOURCES[::-1], "query", QUESTION) == texts[::-1]
    assert writer.write([], "query", QUESTION) == []


def test_a_model_whose_cache_cannot_be_shared_writes_the_same(causal, monkeypatch):
    texts = TransformersWriter(causal, SAMPLING).write(SOURCES, "query", QUESTION)
    monkeypatch.setattr(Causal, "prefix", lambda self, ids: None)  # as for a sliding window
    assert TransformersWriter(causal, SAMPLING).write(SOURCES, "query", QUESTION) == texts


def test_a_text_is_its_first_line(causal):
    ids = causal.bare(["  Where is it?\nText: next"])[0]
    assert causal.text_of(ids) == "Where is it?"
    newline = causal.bare(["\n"])[0][-1]
    assert causal.finished([5, newline])
    assert causal.finished([5, causal.end])
    assert not causal.finished([5, 6])
    assert not causal.finished([])


def test_sources_are_put_on_one_line_and_cut(folder):
    model = Causal.load(folder, source_length=4)
    before, after = (model.bare([part])[0] for part in QUESTION.around)
    (ids,) = writing_ids(model, [SourceText(0, "a man\n\nsleeps in the park and runs at home")], QUESTION)
    assert ids == [*before, *model.bare(["a man sleeps in the park and runs at home"])[0][:4], *after]


@torch.no_grad()
def test_verdicts_are_the_softmax_over_two_words(causal):
    pairs = [(anchor, one) for anchor, positive, (negative,) in TRIPLETS[::40] for one in (positive, negative)]
    found = judge(causal, pairs, batch=3)
    true, false = (causal.bare([word])[0][0] for word in (" true", " false"))
    for ids, one in zip(judging_ids(causal, pairs), found, strict=True):
        logits = causal.model(input_ids=torch.tensor([ids])).logits[0, -1].double()
        assert one == pytest.approx(float(torch.softmax(logits[[true, false]], 0)[0]), abs=1e-5)
    assert len(np.unique(found)) > 3


def test_only_target_tokens_count_in_the_loss(causal):
    batch = Batches(triplets(), 3, seed=1).batch(0)
    rows = instances(causal, batch)
    assert len(rows) == 12
    instance_losses = [
        (instance, loss.item(), first)
        for group, of_group, first in losses(causal, rows)
        for instance, loss, first in zip(group, of_group, first, strict=True)
    ]
    big = causal.model.double()
    for instance, loss, first in instance_losses:
        with torch.no_grad():
            logits = big(input_ids=torch.tensor([[*instance.source, *instance.target]])).logits[0].log_softmax(-1)
        start = len(instance.source) - 1
        assert loss == pytest.approx(
            -sum(float(logits[start + at, token]) for at, token in enumerate(instance.target)), rel=1e-4
        )
        np.testing.assert_allclose(first.log_softmax(-1).detach(), logits[start], atol=1e-3)
    causal.model.float()


def test_targets_follow_the_prompt_after_a_space(causal):
    instance, *_ = instances(causal, Batches(triplets(), 1, seed=1).batch(0))
    assert instance.target[-1] == causal.end
    assert causal.tokenizer.decode(instance.target[:-1]).startswith(" ")
    assert not causal.tokenizer.decode(instance.source).endswith(" ")


def test_a_saved_model_writes_the_same_and_knows_what_it_learned(folder, tmp_path):
    plain = Causal.load(folder)
    assert plain.learned is None
    plain.save(tmp_path / "saved")
    again = Causal.load(tmp_path / "saved")
    assert again.learned == plain.wording
    assert again.sha256 == plain.sha256


def test_a_model_without_padding_gets_its_end(folder):
    model = Causal.load(folder)
    assert (model.pad, model.end) == (1, 1)


def test_a_model_without_an_end_is_refused(tmp_path):
    build_small_causal(tmp_path / "model", eos_token_id=None)
    with pytest.raises(ModelError, match="eos_token_id is None"):
        Causal.load(tmp_path / "model")


def test_a_causal_model_without_training_writes_at_a_lower_temperature(folder):
    assert Causal.load(folder).temperature == 0.5
    assert Causal.load(folder, wording=Wording()).temperature == 1.0
    assert (Sampling().heat, Sampling(temperature=0.3).heat) == (1.0, 0.3)
