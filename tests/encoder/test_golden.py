"""Golden vectors: written with every saved model, read back as they were, and compared row by row."""

import json
import unicodedata

import numpy as np
import pytest
from safetensors.numpy import save_file

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.golden import FILE, Golden, agreement, golden_texts, put_golden, read_golden
from sentloom.errors import DamagedFile
from tests.encoder.small_models import build_model_folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("bert"))


def test_texts_are_of_every_kind():
    texts = golden_texts()
    names = {unicodedata.name(letter, "NONE").split()[0] for text in texts for letter in text}
    assert 110 <= len(texts) <= 130
    assert len(set(texts)) == len(texts)
    assert "" in texts
    assert max(map(len, texts)) > 3000
    assert min(len(text) for text in texts if text.strip()) == 1
    assert names >= {
        "LATIN",
        "CYRILLIC",
        "GREEK",
        "HEBREW",
        "ARABIC",
        "DEVANAGARI",
        "THAI",
        "CJK",
        "HIRAGANA",
        "HANGUL",
    }
    assert "🙂" in texts


def test_cosines_by_hand():
    vectors = np.array([[2, 0], [1, 1], [0, 0], [3, 4]], np.float32)
    expected = np.array([[1, 0], [0, 2], [0, 0], [4, 3]], np.float32)
    cosines = [1, 0.5**0.5, 1, 24 / 25]
    measured = agreement(["a", "b", "c", "d"], vectors, expected)
    assert measured.mean == pytest.approx(sum(cosines) / 4)
    assert (measured.least, measured.furthest) == (pytest.approx(0.5**0.5), "b")


def test_a_vector_that_became_zero_does_not_agree():
    zero, ones = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    assert agreement(["a"], zero, ones).mean == 0


def test_one_text_far_off_is_noticed_where_only_rounding_may_differ():
    texts, vectors = ["a"] * 1000, np.tile(np.array([[1, 0]], np.float32), (1000, 1))
    turned = vectors.copy()
    turned[7] = [1, 0.05]
    measured = agreement(texts, turned, vectors)
    assert measured.mean > 0.99999 > measured.least
    assert not Golden(texts, vectors).holds(measured)
    assert Golden(texts, vectors, required=0.99).holds(measured)


def test_every_saved_model_has_them(base, tmp_path):
    encoder = Encoder.load(base, prompts={"symmetric": Prompt("about: ")})
    encoder.save(tmp_path / "saved")
    golden = read_golden(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved")
    assert golden.texts == golden_texts()
    assert np.array_equal(golden.vectors, encoder.encode(golden.texts))
    assert golden.holds(golden.check(again))


def test_another_model_is_noticed(base, tmp_path):
    encoder = Encoder.load(base)
    encoder.save(tmp_path / "saved")
    golden = read_golden(tmp_path / "saved")
    other = Encoder.load(base, pooling="max")
    assert not golden.holds(golden.check(other))


def test_they_are_of_full_precision(base, tmp_path):
    encoder = Encoder.load(base, precision="bf16")
    encoder.save(tmp_path / "saved")
    golden = read_golden(tmp_path / "saved")
    assert encoder.precision == "bf16"
    assert golden.check(Encoder.load(base)).least > 0.9999999


def test_read_back_as_written(tmp_path):
    golden = Golden(["", "é\n🙂"], np.array([[1, 2], [3, 4]], np.float32), required=0.99)
    put_golden(golden, tmp_path)
    back = read_golden(tmp_path)
    assert (back.texts, back.required) == (golden.texts, 0.99)
    assert np.array_equal(back.vectors, golden.vectors)


def test_the_same_vectors_give_the_same_file(tmp_path):
    golden, written = Golden(["a"], np.ones((1, 2), np.float32)), set()
    for _ in range(8):
        put_golden(golden, tmp_path)
        written.add((tmp_path / FILE).read_bytes())
    assert len(written) == 1


def test_a_folder_without_them(base):
    assert read_golden(base) is None


@pytest.mark.parametrize("damage", ["bytes", "facts", "no facts", "shape", "nan"])
def test_damaged_ones_are_refused(damage, tmp_path):
    vectors = np.full((2, 3), np.nan if damage == "nan" else 1, np.float32)
    facts = json.dumps({"texts": ["a"] if damage == "shape" else ["a", "b"], "required": 0.99})
    metadata = {"facts": "[" if damage == "facts" else facts} if damage != "no facts" else None
    save_file({"vectors": vectors}, tmp_path / FILE, metadata=metadata)
    if damage == "bytes":
        (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-5])
    with pytest.raises(DamagedFile, match=r"golden\.safetensors: the golden vectors are damaged"):
        read_golden(tmp_path)
