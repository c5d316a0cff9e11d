"""The cache of vectors on disk behaves like a dictionary, whatever happens to the files."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from sentloom.errors import InputError, ModelError
from sentloom.search.vectors import VectorCache, _join, _read

WIDTH = 8


class Encode:
    """Draws new vectors at each call, so that only a cached one can be the same again, and counts the texts."""

    def __init__(self, seed=0, width=WIDTH):
        self.rng, self.width, self.asked = np.random.default_rng(seed), width, []

    def __call__(self, texts):
        self.asked += texts
        return self.rng.normal(size=(len(texts), self.width)).astype(np.float32)


def never(texts):
    raise AssertionError(f"asked for {texts}")


def numbered(count):
    return [f"text {number}" for number in range(count)]


def shards(folder):
    return sorted(Path(folder).glob("*/[0-9]*"))


SMALL_BLOCKS = partial(VectorCache, block=4)


calls = st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.text(max_size=2), max_size=9)), max_size=5)


@settings(max_examples=30)  # each stored block waits for the disk
@given(calls)
def test_a_cache_is_a_dictionary(tmp_path_factory, calls):
    folder, encode, known = tmp_path_factory.mktemp("cache"), Encode(), {}
    for model, texts in calls:
        before = len(encode.asked)
        vectors = VectorCache(folder).vectors(model, texts, encode)
        new = [text for text in dict.fromkeys(texts) if (model, text) not in known]
        assert encode.asked[before:] == new
        assert len(vectors) == len(texts)
        for text, vector in zip(texts, vectors, strict=True):
            assert known.setdefault((model, text), vector.tobytes()) == vector.tobytes()


def test_cached_vectors_are_bit_identical(tmp_path):
    texts = [*numbered(10), "text 3"]
    first = VectorCache(tmp_path).vectors("model", texts, Encode())
    again = VectorCache(tmp_path).vectors("model", texts[::-1], never)
    assert np.array_equal(first, again[::-1])
    assert np.array_equal(first[3], first[10])


def test_a_killed_run_resumes(tmp_path):
    encode = Encode()

    def dies(texts):
        if len(encode.asked) == 8:
            raise KeyboardInterrupt
        return encode(texts)

    with pytest.raises(KeyboardInterrupt):
        SMALL_BLOCKS(tmp_path).vectors("model", numbered(18), dies)
    again = Encode()
    SMALL_BLOCKS(tmp_path).vectors("model", numbered(18), again)
    assert again.asked == numbered(18)[8:]


def cut_in_half(shard):
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])


def flip_a_bit_of_the_last_vector(shard):
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)


def other_tensors(shard):
    save_file({"keys": np.zeros((4, 2), np.uint64)}, shard)


def other_types(shard):
    tensors = load_file(shard)
    save_file(tensors | {"vectors": tensors["vectors"].astype(np.float64)}, shard, {"crc32": "0"})


def no_checksum(shard):
    save_file(load_file(shard), shard)


def no_rows(shard):
    save_file({"keys": np.zeros((0, 2), np.uint64), "vectors": np.zeros((0, WIDTH), np.float32)}, shard)


def empty(shard):
    shard.write_bytes(b"")


def noise(shard):
    shard.write_bytes(np.random.default_rng(0).bytes(999))


DAMAGES = [cut_in_half, flip_a_bit_of_the_last_vector, other_tensors, other_types, no_checksum, no_rows, empty, noise]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_is_removed_and_only_its_texts_are_encoded_again(tmp_path, damage):
    first = SMALL_BLOCKS(tmp_path).vectors("model", numbered(12), Encode())
    damaged = shards(tmp_path)[1]
    damage(damaged)
    encode = Encode(seed=1)
    again = SMALL_BLOCKS(tmp_path).vectors("model", numbered(12), encode)
    assert encode.asked == numbered(12)[4:8]
    assert np.array_equal(first[[0, 1, 2, 3, 8, 9, 10, 11]], again[[0, 1, 2, 3, 8, 9, 10, 11]])
    assert not damaged.exists()
    assert np.array_equal(again, SMALL_BLOCKS(tmp_path).vectors("model", numbered(12), never))


def test_a_shard_removed_during_the_call_is_encoded_again(tmp_path, monkeypatch):
    SMALL_BLOCKS(tmp_path).vectors("model", numbered(8), Encode())

    def vanishing(shard, name):
        if name == "vectors" and shard == victim:
            shard.unlink()
        return _read(shard, name)

    victim = shards(tmp_path)[0]
    monkeypatch.setattr("sentloom.search.vectors._read", vanishing)
    encode = Encode()
    SMALL_BLOCKS(tmp_path).vectors("model", numbered(8), encode)
    assert encode.asked == numbered(8)[:4]


def test_the_older_of_two_cached_vectors_wins(tmp_path):
    first = VectorCache(tmp_path).vectors("model", ["a"], Encode())
    (shard,) = shards(tmp_path)
    aside = shard.rename(tmp_path / "aside")
    VectorCache(tmp_path).vectors("model", ["a"], Encode(seed=1))
    aside.rename(shard)
    assert np.array_equal(VectorCache(tmp_path).vectors("model", ["a"], never), first)


def test_beyond_the_limit_the_least_recently_used_are_removed(tmp_path):
    SMALL_BLOCKS(tmp_path).vectors("old", numbered(12), Encode())
    oldest, used, newest = shards(tmp_path)
    size = oldest.stat().st_size
    for age, shard in ((30, oldest), (20, used), (10, newest)):
        os.utime(shard, (time.time() - age, time.time() - age))
    SMALL_BLOCKS(tmp_path).vectors("old", numbered(8)[4:], never)  # touches `used`
    assert used.stat().st_mtime > newest.stat().st_mtime
    SMALL_BLOCKS(tmp_path, limit=2 * size).vectors("new", numbered(4), Encode())
    assert (oldest.exists(), newest.exists(), used.exists()) == (False, False, True)
    assert len(shards(tmp_path)) == 2


def test_a_call_beyond_the_limit_works_and_keeps_what_it_uses(tmp_path):
    cache = SMALL_BLOCKS(tmp_path, limit=1)
    first = cache.vectors("model", numbered(6), Encode())
    again = cache.vectors("model", numbered(12), encode := Encode(seed=1))
    assert encode.asked == numbered(12)[6:]
    assert np.array_equal(again[:6], first)
    assert np.array_equal(cache.vectors("model", numbered(12), never), again)
    cache.vectors("other", ["a"], Encode())
    assert len(shards(tmp_path)) == 1


def test_partial_files_are_not_read_and_are_removed_when_old(tmp_path):
    cache = VectorCache(tmp_path)
    cache.vectors("model", ["a"], Encode())
    (shard,) = shards(tmp_path)
    stale, fresh = (shard.with_name(f".{name}.safetensors") for name in ("stale", "fresh"))
    stale.write_bytes(b"half")
    fresh.write_bytes(b"half")
    os.utime(stale, (0, 0))
    cache.vectors("model", ["b"], Encode())
    assert (stale.exists(), fresh.exists(), shard.exists()) == (False, True, True)


def test_a_folder_that_cannot_be_written_gives_one_note(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    cache, encode = SMALL_BLOCKS(tmp_path / "file" / "vectors"), Encode()
    vectors = cache.vectors("model", numbered(9), encode)
    assert (vectors.shape, encode.asked) == ((9, WIDTH), numbered(9))
    assert "cannot be cached" in cache.note
    assert "file" in cache.note


def test_a_full_disk_gives_one_note(tmp_path, monkeypatch):
    tries = []

    def full(*arguments):
        tries.append(arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sentloom.search.vectors.save_file", full)
    cache = SMALL_BLOCKS(tmp_path)
    assert len(cache.vectors("model", numbered(9), Encode())) == 9
    assert len(tries) == 1
    assert "No space left" in cache.note
    assert list(tmp_path.rglob("*.safetensors")) == []


def test_non_finite_vectors_are_never_cached(tmp_path):
    with pytest.raises(ModelError, match="NaN"):
        VectorCache(tmp_path).vectors("model", ["a"], lambda texts: np.full((1, WIDTH), np.nan))
    with pytest.raises(InputError, match="item 1"):
        VectorCache(tmp_path).vectors("model", ["a", None], Encode())
    assert shards(tmp_path) == []


def test_a_model_whose_width_changed_is_refused(tmp_path):
    VectorCache(tmp_path).vectors("model", ["a"], Encode())
    with pytest.raises(ModelError, match="both 8 and 9"):
        VectorCache(tmp_path).vectors("model", ["a", "b"], Encode(width=9))


def test_no_texts_give_no_vectors(tmp_path):
    assert len(VectorCache(tmp_path).vectors("model", [], never)) == 0


def truth(texts):
    return np.array([[len(text), *text.encode()[-4:]] for text in texts], np.float32)


def work(folder, seed):
    """Make many calls with overlapping texts, under a limit that makes processes remove each other's shards."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        texts = [f"text {number:04d}" for number in rng.integers(0, 60, 12)]
        vectors = SMALL_BLOCKS(folder, limit=2000).vectors(f"model {rng.integers(2)}", texts, truth)
        assert np.array_equal(vectors, truth(texts))


def forked(job):
    """Start a child that exits with 0 only if the job succeeds."""
    child = os.fork()
    if not child:
        try:
            job()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def test_concurrent_processes_do_not_interfere(tmp_path):
    children = [forked(lambda seed=seed: work(tmp_path, seed)) for seed in range(2)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]


def test_a_kill_at_any_time_leaves_a_usable_cache(tmp_path):
    for number in range(8):
        child = forked(lambda seed=number: work(tmp_path, seed))
        time.sleep(0.004 * number)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        vectors = SMALL_BLOCKS(tmp_path).vectors("model 0", texts := [f"text {n:04d}" for n in range(12)], truth)
        assert np.array_equal(vectors, truth(texts))


def test_the_lookup_handles_hashes_that_share_a_half():
    """Of two texts with the same first half of their hash, the second is not found and never mistaken for the first."""
    cached = np.array([[7, 1], [7, 2], [9, 9]], np.uint64)
    keys = np.array([[7, 2], [7, 1], [9, 9], [9, 8], [10, 0], [0, 0]], np.uint64)
    assert _join(cached, keys).tolist() == [-1, 0, 2, -1, -1, -1]
