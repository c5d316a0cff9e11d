"""Vectors in files are the same as in memory, and files are complete or absent."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.vector_files import encode_to_file, open_vectors, write_parquet
from sentloom.errors import InputError
from sentloom.locks import alone_on
from tests.encoder.small_models import SENTENCES

TEXTS = pa.chunked_array([SENTENCES[:5], SENTENCES[5:] + SENTENCES[:2]])


@pytest.fixture
def bert(model_folders):
    return Encoder.load(model_folders["bert"])


def test_npy(bert, tmp_path):
    encode_to_file(bert, TEXTS, tmp_path / "v.npy", source="s")
    expected = bert.encode(TEXTS)
    assert np.array_equal(open_vectors(tmp_path / "v.npy", expected.shape), expected)


def test_parquet_contains_texts_and_vectors(bert, tmp_path):
    encode_to_file(bert, TEXTS, tmp_path / "v.parquet", source="s")
    write_parquet(tmp_path / "groups.parquet", TEXTS, bert.encode(TEXTS), rows=4)
    assert pq.ParquetFile(tmp_path / "groups.parquet").num_row_groups == 3
    assert pq.read_table(tmp_path / "groups.parquet").equals(pq.read_table(tmp_path / "v.parquet"))
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column("text").to_pylist() == TEXTS.to_pylist()
    assert np.array_equal(np.array(table.column("vector").to_pylist(), np.float32), bert.encode(TEXTS))


def test_a_failure_leaves_no_files(bert, tmp_path):
    with pytest.raises(InputError, match=r"\.npy or \.parquet"):
        encode_to_file(bert, TEXTS, tmp_path / "v.csv", source="s")
    with pytest.raises(InputError, match="item 1: found None"):
        encode_to_file(bert, pa.chunked_array([["a", None]]), tmp_path / "v.npy", source="s")
    assert list(tmp_path.iterdir()) == []


def test_vectors_of_another_file_are_refused(bert, tmp_path):
    encode_to_file(bert, TEXTS, tmp_path / "v.npy", source="s")
    with pytest.raises(InputError, match="shape"):
        open_vectors(tmp_path / "v.npy", (3, bert.dimension))
    (tmp_path / "v.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match="the vectors are unreadable"):
        open_vectors(tmp_path / "v.npy", (10, bert.dimension))


def test_any_damage_to_a_vector_file_is_refused(tmp_path):
    path, vectors = tmp_path / "v.npy", np.ones((3, 4), np.float32)
    np.save(path, vectors)
    whole = path.read_bytes()
    broken = [whole[:end] for end in range(len(whole))] + [whole + b"0", b"PK\x03\x04" + whole]
    broken += [whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at in range(70) for bit in (1, 2, 4, 8, 64)]
    for content in broken:
        path.write_bytes(content)
        with suppress(InputError):
            assert np.array_equal(open_vectors(path, (3, 4)), vectors)  # one space of the header replaced by another
    np.save(path, vectors.astype(np.float64))
    with pytest.raises(InputError, match="float64"):
        open_vectors(path, (3, 4))


class Stop(Exception):
    """Ends a run as Ctrl-C would."""


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_an_interrupted_run_resumes(bert, tmp_path, monkeypatch, ending):
    bert.window = 3
    target, tokenize, seen = tmp_path / f"v.{ending}", bert.tokenize, []
    encode_to_file(bert, TEXTS, tmp_path / f"whole.{ending}", source="s")

    def stop_at_the_third_window(texts, role):
        seen.append(list(texts))
        if len(seen) == 3:
            raise Stop
        return tokenize(texts, role)

    monkeypatch.setattr(bert, "tokenize", stop_at_the_third_window)
    with pytest.raises(Stop):
        encode_to_file(bert, TEXTS, target, source="s")
    assert not target.exists()
    assert encode_to_file(bert, TEXTS, target, source="s") == 6
    assert seen[3] == seen[2] == SENTENCES[6:8]  # eight distinct texts: three, three, and the last two again
    assert target.read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"v.{ending}", f"whole.{ending}"]


def interrupt(bert, target, source, patch, windows):
    """Run a job that is interrupted in the given window."""
    tokenize, seen = bert.tokenize, []

    def die(texts, role):
        seen.append(texts)
        return tokenize(texts, role) if len(seen) < windows else 1 / 0

    with patch.context() as context:
        context.setattr(bert, "tokenize", die)
        with pytest.raises(ZeroDivisionError):
            encode_to_file(bert, TEXTS, target, source=source)


def test_another_job_in_between_does_not_mix_with_this_one(bert, tmp_path, monkeypatch):
    bert.window = 3
    target = tmp_path / "v.npy"
    interrupt(bert, target, "one", monkeypatch, windows=3)
    interrupt(bert, target, "another", monkeypatch, windows=1)  # interrupted before the first window is complete
    assert encode_to_file(bert, TEXTS, target, source="one") == 0
    assert np.array_equal(np.load(target), bert.encode(TEXTS))


def test_truncated_vectors_are_not_resumed(bert, tmp_path, monkeypatch):
    bert.window = 3
    interrupt(bert, tmp_path / "v.npy", "s", monkeypatch, windows=3)
    part = tmp_path / ".v.npy.vectors.part"
    part.write_bytes(part.read_bytes()[:300])
    assert encode_to_file(bert, TEXTS, tmp_path / "v.npy", source="s") == 0
    assert np.array_equal(np.load(tmp_path / "v.npy"), bert.encode(TEXTS))


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"job": 1}'])
def test_a_damaged_journal_or_part_means_a_fresh_start(bert, tmp_path, monkeypatch, damage):
    bert.window = 3
    for name in (".v.npy.done.part", ".v.npy.vectors.part"):
        interrupt(bert, tmp_path / "v.npy", "s", monkeypatch, windows=3)
        (tmp_path / name).write_bytes(damage)
        assert encode_to_file(bert, TEXTS, tmp_path / "v.npy", source="s") == 0
        assert np.array_equal(np.load(tmp_path / "v.npy"), bert.encode(TEXTS))


def test_a_damaged_window_of_an_interrupted_run_is_computed_again(bert, tmp_path, monkeypatch):
    bert.window = 3
    interrupt(bert, tmp_path / "v.npy", "s", monkeypatch, windows=3)
    part = np.lib.format.open_memmap(tmp_path / ".v.npy.vectors.part", mode="r+")
    part[4] = 0  # in the second window
    part.flush()
    assert encode_to_file(bert, TEXTS, tmp_path / "v.npy", source="s") == 3
    assert np.array_equal(np.load(tmp_path / "v.npy"), bert.encode(TEXTS))


def test_a_target_that_another_process_writes_is_refused(bert, tmp_path):
    with alone_on(tmp_path / "v.npy"), pytest.raises(InputError, match=r"v\.npy: another process is writing to it"):
        encode_to_file(bert, TEXTS, tmp_path / "v.npy", source="s")
    assert list(tmp_path.iterdir()) == []


def test_an_unwritten_row_is_detected(bert, tmp_path, monkeypatch):
    fill = bert.fill

    def leave_one_out(out, *arguments, **options):
        kept = out[7].copy()
        yield from fill(out, *arguments, **options)
        out[7] = kept  # restore the old value

    monkeypatch.setattr(bert, "fill", leave_one_out)
    with pytest.raises(InputError, match="row 7 has no finite vector"):
        encode_to_file(bert, TEXTS, tmp_path / "v.npy", source="s")
    assert list(tmp_path.iterdir()) == []


def test_fingerprints_differ_between_encoders(model_folders):
    first = Encoder.load(model_folders["bert"]).fingerprint()
    assert Encoder.load(model_folders["bert"]).fingerprint() == first
    assert Encoder.load(model_folders["bert"], pooling="max").fingerprint() != first
    assert Encoder.load(model_folders["bert"], max_length=20).fingerprint() != first
    assert Encoder.load(model_folders["bert"], prompts={"query": Prompt("q: ")}).fingerprint() != first
    changed = Encoder.load(model_folders["bert"])
    next(changed.parameters()).data[0] += 1
    assert changed.fingerprint() != first
