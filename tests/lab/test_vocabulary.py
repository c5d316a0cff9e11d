"""New vocabularies: hand-computed embeddings, unchanged tokens, folders that load anywhere."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.encoder import Encoder
from sentloom.errors import InputError, ModelError
from sentloom.lab.vocabulary import longest_matches, new_vocabulary, rows_of, same_tokens
from tests.encoder.small_models import SENTENCES

GERMAN = [
    "Der Hund läuft durch den schönen Garten.",
    "Die Schule liegt hinter dem Bahnhof.",
    "Wir schlafen im Schlafzimmer.",
    "Хорошо, спасибо.",
] * 6
TEACHABLE = ["bert", "distilbert", "electra", "albert", "xlm-roberta", "t5", "mt5"]
WORDPIECES = ["[UNK]", "ha", "##u", "##s", "hau", "##aus", "t", "##ür"]


def table(encoder) -> torch.Tensor:
    return encoder.backbone.model.get_input_embeddings().weight.detach()


def test_a_new_embedding_is_the_mean_of_the_old_tokens_at_the_same_position() -> None:
    ids = {token: number for number, token in enumerate(WORDPIECES)}
    old = torch.tensor([[9.0], [1.0], [2.0], [4.0], [8.0], [16.0], [32.0], [64.0]])

    def split(token: str) -> list[int]:
        return longest_matches(token, ids, "##") or [0]

    assert split("haus") == [4, 3]  # hau ##s, not ha ##u ##s
    assert split("##haus") == [0]  # there is no ##h: the beginning of a word cannot continue one
    assert split("##uaus") == [2, 5]
    assert split("aus") == [0]
    rows = rows_of(["[UNK]", "hau", "haus", "##uaus", "##haus", "tür"], ids, split, 0, old)
    mean = (9 + 1 + 2 + 4 + 8 + 16 + 32 + 64) / 8
    assert rows.flatten().tolist() == [9, 8, (8 + 4) / 2, (2 + 16) / 2, mean, (32 + 64) / 2]


def test_an_unknown_part_counts_as_the_mean() -> None:
    rows = rows_of(["new"], {"<unk>": 0, "a": 1, "b": 2}, lambda token: [1, 0], 0, torch.tensor([[3.0], [6.0], [9.0]]))
    assert rows.tolist() == [[(6 + 6) / 2]]


@pytest.mark.parametrize("keep_old", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("family", TEACHABLE)
def test_a_student_saves_loads_and_has_the_new_tokens(family, keep_old, model_folders, tmp_path) -> None:
    encoder = Encoder.load(model_folders[family])
    before = table(encoder).clone()
    student = new_vocabulary(encoder, GERMAN, 150, keep_old)
    assert len(student.tokens.bare(GERMAN[:1])[0]) < len(encoder.tokens.bare(GERMAN[:1])[0])
    assert len(student.tokens.tokenizer) == len(table(student)) == student.backbone.model.config.vocab_size
    assert torch.equal(table(encoder), before)
    old, new = encoder.tokens.tokenizer.get_vocab(), student.tokens.tokenizer.get_vocab()
    kept = [token for token in new if token in old]
    assert torch.equal(table(student)[[new[token] for token in kept]], before[[old[token] for token in kept]])
    for special in encoder.tokens.tokenizer.all_special_tokens:
        assert new[special] == old[special]
    assert student.tokens.specials == encoder.tokens.specials
    student.save(tmp_path / "student")
    texts = [*SENTENCES, *GERMAN[:4]]
    vectors = student.encode(texts)
    assert np.array_equal(Encoder.load(tmp_path / "student").encode(texts), vectors)
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(tmp_path / "student"), device="cpu").encode(texts)
    assert theirs == pytest.approx(vectors, abs=1e-5)


def test_the_decoder_shares_the_new_embeddings(model_folders) -> None:
    student = new_vocabulary(Encoder.load(model_folders["t5"], pooling="decoder-first"), GERMAN, 150)
    model = student.backbone.model
    tables = [model.get_encoder().get_input_embeddings().weight, model.get_decoder().get_input_embeddings().weight]
    assert all(torch.equal(copied, table(student)) for copied in tables)


def test_extending_does_not_change_old_text_and_its_vectors(model_folders) -> None:
    encoder = Encoder.load(model_folders["bert"])
    english = SENTENCES[:-1]
    student = new_vocabulary(encoder, GERMAN, 150)
    assert same_tokens(encoder, student, english) == 1
    assert np.array_equal(student.encode(english), encoder.encode(english))
    assert same_tokens(encoder, student, [GERMAN[0], *english[:3]]) == 0.75
    assert student.tokens.tokenizer.tokenize("im Schlafzimmer") == ["im", "schlafzimmer"]


def test_learned_wordpiece_tokens_are_reproducible(model_folders) -> None:
    encoder = Encoder.load(model_folders["bert"])
    first, second = (new_vocabulary(encoder, GERMAN, 60).tokens.tokenizer.get_vocab() for _ in range(2))
    assert first == second


@pytest.fixture(scope="module")
def gap(model_folders, tmp_path_factory):
    """A tokenizer with "##bc" but without "##c": the new token "ab" must not make "abc" unknown."""
    folder = tmp_path_factory.mktemp("gap")
    for file in Path(model_folders["bert"]).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    state = json.loads((folder / "tokenizer.json").read_text())
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##bc", "##b", "##abc"]
    size = len(state["model"]["vocab"])
    pieces += [f"[unused{number}]" for number in range(size - len(pieces))]
    state["model"]["vocab"] = {token: number for number, token in enumerate(pieces)}
    (folder / "tokenizer.json").write_text(json.dumps(state))
    encoder = Encoder.load(folder)
    return encoder, new_vocabulary(encoder, ["ab abb ab"] * 10, 50)


@settings(max_examples=25)
@given(st.text("abc ", max_size=12))
def test_known_words_do_not_become_unknown(gap, text) -> None:
    old, student = gap
    assert "ab" in student.tokens.tokenizer.get_vocab()
    unknown = old.tokens.tokenizer.unk_token_id
    assert student.tokens.bare([text])[0].count(unknown) <= old.tokens.bare([text])[0].count(unknown)


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_unsupported_tokenizers_are_refused(family, model_folders) -> None:
    with pytest.raises(ModelError, match="a tokenizer of the type BPE"):
        new_vocabulary(Encoder.load(model_folders[family]), GERMAN, 100)


def test_text_without_new_tokens_and_too_small_sizes_are_refused(model_folders) -> None:
    encoder = Encoder.load(model_folders["bert"])
    for texts in ([], ["Yes"], ["..."] * 9):
        with pytest.raises(InputError, match="no token that the model lacks"):
            new_vocabulary(encoder, texts, 100)
    with pytest.raises(InputError, match="special tokens"):
        new_vocabulary(encoder, GERMAN, 5, keep_old=False)
