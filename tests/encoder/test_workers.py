"""The number of threads is restored, also with concurrent calls."""

import threading

import torch

from sentloom.encoder.device import pack_workers

CPU = torch.device("cpu")


def test_workers_have_one_thread_each():
    before = torch.get_num_threads()
    with pack_workers(CPU) as executor:
        assert list(executor.map(lambda _: torch.get_num_threads(), range(4))) == [1] * 4
    assert torch.get_num_threads() == before


def test_overlapping_calls_restore_the_number_after_the_last_one():
    torch.set_num_threads(2)
    inside, go_on = threading.Event(), threading.Event()

    def hold():
        with pack_workers(CPU):
            inside.set()
            go_on.wait(10)

    other = threading.Thread(target=hold)
    other.start()
    inside.wait(10)
    with pack_workers(CPU) as executor:
        go_on.set()
        other.join()
        assert executor.submit(torch.get_num_threads).result() == 1
    assert torch.get_num_threads() == 2
