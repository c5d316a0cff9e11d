"""Vectors on disk: the same as in memory, whole or not at all."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.vector_files import encode_to_file, open_vectors
from sentloom.errors import InputError
from tests.encoder.small_models import SENTENCES

TEXTS = pa.chunked_array([SENTENCES[:5], SENTENCES[5:] + SENTENCES[:2]])


@pytest.fixture(scope="module")
def bert(model_folders):
    return Encoder.load(model_folders["bert"])


def test_npy(bert, tmp_path):
    encode_to_file(bert, TEXTS, tmp_path / "v.npy")
    expected = bert.encode(TEXTS)
    assert np.array_equal(open_vectors(tmp_path / "v.npy", expected.shape), expected)


def test_parquet_holds_texts_and_vectors(bert, tmp_path, monkeypatch):
    monkeypatch.setattr("sentloom.encoder.vector_files.ROWS", 4)
    encode_to_file(bert, TEXTS, tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column("text").to_pylist() == TEXTS.to_pylist()
    assert np.array_equal(np.array(table.column("vector").to_pylist(), np.float32), bert.encode(TEXTS))


def test_nothing_is_left_of_a_failure(bert, tmp_path):
    with pytest.raises(InputError, match=r"\.npy or \.parquet"):
        encode_to_file(bert, TEXTS, tmp_path / "v.csv")
    with pytest.raises(InputError, match="item 1: found None"):
        encode_to_file(bert, pa.chunked_array([["a", None]]), tmp_path / "v.npy")
    assert list(tmp_path.iterdir()) == []


def test_vectors_of_another_file_are_refused(bert, tmp_path):
    encode_to_file(bert, TEXTS, tmp_path / "v.npy")
    with pytest.raises(InputError, match="shape"):
        open_vectors(tmp_path / "v.npy", (3, bert.dimension))
    (tmp_path / "v.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match="no readable vectors"):
        open_vectors(tmp_path / "v.npy", (10, bert.dimension))
