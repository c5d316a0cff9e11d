"""Shards: workers in any order, repeated and resumed, give the file of a single process to the last bit."""

import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from sentloom.encoder import Encoder, vector_files
from sentloom.encoder.vector_files import Worker, encode_to_file, encode_with_ray, shard
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.faults.test_ray_kills import workers_of

pytestmark = pytest.mark.usefixtures("one_thread")
TEXTS = pa.chunked_array([[f"{text} {number % 40}" for number in range(60) for text in SENTENCES]])  # 320 distinct
WINDOW = 32
SHARDS = "[0-9]*.npy"  # whole ones: the name of a partial file, which a kill leaves, starts with a dot


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    return partial(opened, build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert"))


def opened(folder):
    encoder = Encoder.load(folder, device="cpu")
    encoder.window = WINDOW
    return encoder


@pytest.fixture(scope="module")
def whole(load, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "v.npy"
    encode_to_file(load(), TEXTS, path, source="s")
    return path.read_bytes()


@pytest.fixture
def in_this_process(monkeypatch):
    """Runs the blocks here, last first and each twice, as Ray may after a fault."""
    ran = []

    def run_blocks(actor, arguments, numbers, *, workers, gpu, advance):
        workers = [actor(*arguments) for _ in range(workers)]
        for number in [*reversed(numbers), *numbers]:
            ran.append(number)
            advance(int(workers[number % len(workers)]({"number": np.array([number])})["done"][0]))

    monkeypatch.setattr(vector_files, "run_blocks", run_blocks)
    monkeypatch.setattr(vector_files, "check_workers", lambda workers: None)
    return ran


def test_shards_in_any_order_become_the_file_of_one_process(load, whole, in_this_process, tmp_path):
    assert encode_with_ray(load(), load, TEXTS, tmp_path / "v.npy", source="s", workers=2) == 0
    assert (tmp_path / "v.npy").read_bytes() == whole
    assert set(in_this_process) == set(range(10))
    assert [path.name for path in tmp_path.iterdir() if path.name != "scratch"] == ["v.npy"]


def test_what_is_there_is_not_encoded_again_unless_it_is_damaged_or_of_another_job(
    load, whole, in_this_process, tmp_path, monkeypatch
):
    target, folder = tmp_path / "v.npy", tmp_path / ".v.npy.shards"
    with monkeypatch.context() as stopped:
        stopped.setattr(vector_files, "build_file", lambda *arguments, **options: pytest.fail("stopped"))
        for source in ("another", "s"):
            with pytest.raises(pytest.fail.Exception, match="stopped"):
                encode_with_ray(load(), load, TEXTS, target, source=source, workers=1)
    assert in_this_process.count(0) == 4
    shard(folder, 3).write_bytes(b"damaged")
    in_this_process.clear()
    assert encode_with_ray(load(), load, TEXTS, target, source="s", workers=1) == 320 - WINDOW
    assert set(in_this_process) == {3}
    assert target.read_bytes() == whole


def test_a_worker_with_another_model_refuses(load, in_this_process, tmp_path):
    other = build_model_folder("distilbert", tmp_path / "other")
    with pytest.raises(RuntimeError, match="not the one that the work was started with"):
        encode_with_ray(load(), partial(opened, other), TEXTS, tmp_path / "v.npy", source="s", workers=1)


class SlowWorker(Worker):
    """Leaves time to be killed, and says which process writes what."""

    def write(self, number):
        (self.folder / f"began-{number}-{os.getpid()}").touch()
        time.sleep(0.3)
        return super().write(number)


@pytest.mark.long  # Ray alone takes ten seconds to start
def test_two_workers_one_of_them_killed_write_every_shard_once(load, whole, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'sentloom[ray]'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    monkeypatch.setattr(vector_files, "Worker", SlowWorker)
    target, folder, seen = tmp_path / "v.npy", tmp_path / ".v.npy.shards", {}

    def kill_one():
        while len(list(folder.glob(SHARDS))) < 3:
            time.sleep(0.005)
        busy = {int(path.name.split("-")[2]) for path in folder.glob("began-*")}
        seen["killed"] = next(worker for worker in workers_of(os.getpid()) if worker in busy)
        os.kill(seen["killed"], signal.SIGKILL)

    monkeypatch.setattr(vector_files, "remove", lambda path: None)  # so that the shards can be looked at
    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    try:
        encode_with_ray(load(), load, TEXTS, target, source="s", workers=2)
        killer.join(10)
    finally:
        ray.shutdown()
    began = [path.name.split("-") for path in folder.glob("began-*")]
    assert len({process for *_, process in began}) >= 2
    assert str(seen["killed"]) in {process for *_, process in began}
    assert len(list(folder.glob(SHARDS))) == 10
    assert target.read_bytes() == whole
