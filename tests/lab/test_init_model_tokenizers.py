"""A vocabulary is the same in every process, whatever order its hash maps have."""

import json
import subprocess
import sys

import pytest
from tokenizers import normalizers, pre_tokenizers

from sentloom.lab.init_model import Form, Size, build_model, letters_of, unigram_tokens, wordpiece_tokens
from tests.encoder.small_models import SENTENCES

FORM = Form(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), ["[X]"])
FAMILIES = ("bert", "t5")
BUILD = """
import json, pathlib, sys
from sentloom.lab.init_model import Size, build_model
for family in ("bert", "t5"):
    build_model(pathlib.Path(sys.argv[1]) / family, family, json.loads(sys.argv[2]), size=Size(vocabulary=120, layers=1, width=32))
"""


@pytest.mark.long
def test_another_process_builds_the_same_models(tmp_path):
    arguments = [tmp_path / "other", json.dumps(SENTENCES * 3)]
    subprocess.run([sys.executable, "-c", BUILD, *map(str, arguments)], check=True)
    for family in FAMILIES:
        build_model(tmp_path / family, family, SENTENCES * 3, size=Size(vocabulary=120, layers=1, width=32))
        for file in ("tokenizer.json", "model.safetensors"):
            assert (tmp_path / family / file).read_bytes() == (tmp_path / "other" / family / file).read_bytes()


def test_letters_are_normalised_sorted_and_the_most_used():
    assert letters_of(["Bä b", "a"], FORM.normalizer) == ["a", "b"]
    assert letters_of(["Bä b", "a"], None) == ["B", "a", "b", "ä"]
    assert letters_of(["zzz", "bb", "ab"], None, most=2) == ["b", "z"]


def test_word_pieces_begin_with_special_tokens_and_inner_letters():
    letters = letters_of(SENTENCES, FORM.normalizer)
    tokens = wordpiece_tokens(SENTENCES * 3, 100, FORM, letters)
    inner = [f"##{letter}" for letter in letters]
    assert tokens[: 1 + len(letters)] == ["[X]", *inner]
    assert len(tokens) == len(set(tokens)) == 100
    assert "the" in tokens  # the most frequent word


def test_unigram_tokens_are_ordered_by_score_then_by_name():
    form = Form(None, pre_tokenizers.Metaspace(), ["<unk>"])
    (first, *_), *rest = unigram_tokens(SENTENCES * 3, 60, form, unknown="<unk>")
    assert first == "<unk>"
    assert rest == sorted(rest, key=lambda pair: (-pair[1], pair[0]))
    alone = [token for token, score in rest if len(token) == 1 and score < min(s for t, s in rest if len(t) > 1)]
    assert len(alone) > 1
    assert alone == sorted(alone)
