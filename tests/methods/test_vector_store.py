"""Vectors of a frozen encoder: one file of float32, files of float16 for many, none on a full disk."""

import numpy as np
import pyarrow as pa
import pytest

from sentloom.encoder import Encoder
from sentloom.methods import vector_store
from sentloom.methods.vector_store import HalfVectors, stored_bytes, stored_vectors
from tests.encoder.small_models import SENTENCES

TEXTS = pa.chunked_array([pa.array([f"{text} {n}" for n in range(3) for text in SENTENCES], pa.large_string())])


@pytest.fixture(scope="module")
def encoder(model_folder):
    return Encoder.load(model_folder("bert"))


@pytest.fixture
def small_files(monkeypatch):
    """A limit that 24 vectors exceed, and files of seven rows."""
    monkeypatch.setattr(vector_store, "LARGEST", 1000)
    monkeypatch.setattr(vector_store, "SHARD", 7)


def test_few_vectors_are_one_file_of_float32(encoder, tmp_path):
    told = []
    vectors = stored_vectors(encoder, TEXTS, "c", tmp_path, told.append)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, encoder.encode(TEXTS.to_pylist()), atol=1e-6)
    assert told == []


def test_many_are_files_of_float16_and_read_as_float32(encoder, tmp_path, small_files):
    told = []
    vectors = stored_vectors(encoder, TEXTS, "c", tmp_path, told.append)
    assert isinstance(vectors, HalfVectors)
    rows = np.array([23, 0, 7, 6, 13, 0])
    exact = encoder.encode(TEXTS.to_pylist())[rows]
    assert vectors[rows].dtype == np.float32
    assert np.abs(vectors[rows] - exact).max() <= np.abs(exact).max() * 2**-11  # half a unit in the last place
    assert "24 vectors of 32 dimensions" in told[0]
    assert "float16" in told[0]
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert len(list(folder.glob("0*.npy"))) == 4
    assert not list(folder.glob("*float32*"))


def test_an_interrupted_run_keeps_the_files_that_are_done(encoder, tmp_path, small_files):
    every = np.arange(len(TEXTS))
    before = stored_vectors(encoder, TEXTS, "c", tmp_path, lambda text: None)[every]
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (folder / "000002.npy").write_bytes(b"cut off")
    times = {path.name: path.stat().st_mtime_ns for path in folder.glob("0*.npy")}
    again = stored_vectors(encoder, TEXTS, "c", tmp_path, lambda text: None)
    changed = [name for name, time in times.items() if (folder / name).stat().st_mtime_ns != time]
    assert changed == ["000002.npy"]
    assert np.array_equal(before, again[every])


def test_on_a_full_disk_nothing_is_stored(encoder, tmp_path, small_files, monkeypatch):
    monkeypatch.setattr(vector_store, "SPARE", 1e18)  # no disk has so much room
    told = []
    assert stored_vectors(encoder, TEXTS, "c", tmp_path, told.append) is None
    assert told[0].endswith("so the encoder runs at every step instead")


def test_the_papers_sizes():
    assert stored_bytes(1_000_000, 1024) == 4_096_000_000  # float32
    assert stored_bytes(19_442_200, 1024) == pytest.approx(39.8e9, rel=0.01)  # WMT, float16
    assert stored_bytes(56_741_808, 1024) == pytest.approx(116e9, rel=0.01)  # SMD
