"""Ray itself: missing, not there, and what an actor returns; work on a cluster is in tests/faults."""

import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from sentloom import ray_actors
from sentloom.errors import InputError, MissingPart, SentloomError


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPart, match=r"sentloom\[ray\]"):
        ray_actors.start_ray()


@pytest.mark.long  # `make test` does not install Ray
def test_a_cluster_that_is_not_there_is_reported(monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'sentloom[ray]'")
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(SentloomError, match=r"engine ray: .*Expected Ray to start"):
        ray_actors.start_ray()


def test_an_actor_returns_the_items_of_a_block_and_its_errors_as_text():
    class Doubled(ray_actors.Actor):
        def write(self, number):
            if number > 5:
                raise InputError("block", "it is damaged", "", "delete it")
            return 2 * number

    assert Doubled()({"number": np.array([3])})["done"].tolist() == [6]
    with pytest.raises(RuntimeError, match="block: it is damaged"):
        Doubled()({"number": np.array([6])})


def test_texts_are_laid_out_once_with_a_row_group_per_block(tmp_path):
    path = tmp_path / "texts.parquet"
    ray_actors.lay_out(path, lambda: [["a", "b"], ["c"]])
    ray_actors.lay_out(path, lambda: pytest.fail("it is there"))
    file = pq.ParquetFile(path)
    assert [file.read_row_group(number)["text"].to_pylist() for number in range(2)] == [["a", "b"], ["c"]]
