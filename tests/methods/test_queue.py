"""The queue against a plain list of the newest entries, for any size and any batches."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sentloom.losses import info_nce
from sentloom.methods.negatives import Queue


@given(size=st.integers(1, 12), batches=st.lists(st.integers(1, 30), max_size=8))
def test_it_holds_the_newest_whatever_the_batches(size, batches):
    queue, newest, number = Queue(size, 2, keys=2), [], 0
    for batch in batches:
        ids = torch.arange(number, number + batch)
        number += batch
        queue.enqueue(torch.stack([ids.float(), -ids.float()], dim=1), torch.stack([ids, 7 * ids], dim=1))
        newest = (newest + ids.tolist())[-size:]
        vectors, held = queue.entries()
        assert sorted(held[:, 0].tolist()) == newest
        assert held[:, 1].tolist() == (7 * held[:, 0]).tolist()
        assert vectors[:, 0].tolist() == held[:, 0].tolist()  # each vector beside its own keys
        assert vectors[:, 1].tolist() == (-held[:, 0]).tolist()


def test_wrap_around_replaces_the_oldest_first():
    queue = Queue(10, 1, keys=1)
    for start in range(0, 12, 4):  # 4 + 4 + 4 into 10: the third batch goes round the end
        queue.enqueue(torch.arange(start, start + 4.0)[:, None], torch.arange(start, start + 4)[:, None])
    assert queue.vectors[:, 0].tolist() == [10, 11, 2, 3, 4, 5, 6, 7, 8, 9]


def test_an_empty_queue_gives_no_negatives_and_its_state_comes_back():
    torch.manual_seed(0)
    a, p = torch.randn(2, 3, 4)
    queue = Queue(5, 4, keys=1)
    negatives, _ = queue.entries()
    assert torch.equal(info_nce(a, p, temperature=0.1, negatives=negatives), info_nce(a, p, temperature=0.1))
    queue.enqueue(p, torch.arange(3)[:, None])
    other = Queue(5, 4, keys=1)
    other.load_state_dict(queue.state_dict())
    assert [tensor.tolist() for tensor in other.entries()] == [tensor.tolist() for tensor in queue.entries()]
    assert len(other) == 3


def test_a_queue_of_no_size_stays_empty():
    queue = Queue(0, 4, keys=1)
    queue.enqueue(torch.ones(3, 4), torch.arange(3)[:, None])
    assert len(queue.entries()[0]) == 0
