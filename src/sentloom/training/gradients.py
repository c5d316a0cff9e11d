"""The gradient of a batch's loss: in chunks of its rows, and in several processes that exchange vectors and gradients.

The loss sees the vectors of all rows, so chunks run twice: first for their vectors, then to send the gradients of these
back through the encoder (a gradient cache).
"""

import ctypes
import platform
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.errors import InputError
from sentloom.methods import Embeddings, Learner, Method, TokenMethod
from sentloom.training.optimizers import learning

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX of malloc.h
KEPT = 2**30  # bytes of freed memory


def add_gradients(
    method: Learner, batch: Batch, accelerator: Accelerator, chunk: int | None = None, factor: float = 1.0
) -> float:
    """Add `factor` times the gradient of a batch's loss to this process's parameters; return the loss."""
    share = own_share(batch, accelerator.process_index, accelerator.num_processes)
    chunks = [share.part(start, start + (chunk or len(share))) for start in range(0, len(share), chunk or len(share))]
    runs = [_seeded(batch, accelerator.process_index, number) for number in range(len(chunks))]
    if isinstance(method, TokenMethod):
        return _add_token_gradients(method, batch, chunks, runs, accelerator, factor)
    assert isinstance(method, Method)
    cached = len(chunks) > 1
    parts = []
    for part, seed in zip(chunks, runs, strict=True):
        seed()
        with torch.set_grad_enabled(not cached):
            parts.append(_embed(method, part, accelerator))
    own = [torch.cat(vectors).detach() for vectors in zip(*parts, strict=True)]
    leaves = tuple(accelerator.gather(vectors).requires_grad_() for vectors in own)
    _seeded(batch, -1, 0)()  # the loss is the same in every process
    loss = method.total_loss(leaves, batch)  # in full precision
    (loss * factor).backward()
    first = accelerator.process_index * len(share)
    # Each process sends back its own rows only, and the processes' gradients are averaged: hence the factor.
    back = [
        None if leaf.grad is None else leaf.grad[first : first + len(share)] * accelerator.num_processes
        for leaf in leaves
    ]
    for number, (part, seed) in enumerate(zip(chunks, runs, strict=True)):
        if cached:
            seed()
        vectors = _embed(method, part, accelerator) if cached else parts[number]
        start = int(part.places[0]) - int(share.places[0])
        _flow_back(vectors, [None if grad is None else grad[start : start + len(part)] for grad in back])
    return float(loss.detach())


def _add_token_gradients(
    method: TokenMethod,
    batch: Batch,
    chunks: list[Batch],
    runs: list[Callable[[], object]],
    accelerator: Accelerator,
    factor: float,
) -> float:
    """Plain accumulation: a sum over tokens needs no gradient cache."""
    weight = method.weight(batch)
    total = torch.zeros((), device=accelerator.device)
    for chunk, seed in zip(chunks, runs, strict=True):
        seed()
        with accelerator.autocast():
            loss = method.summed_loss(chunk) / weight
        (loss * factor * accelerator.num_processes).backward()
        total += loss.detach()
    return float(accelerator.reduce(total, reduction="sum"))


def own_share(batch: Batch, process: int, processes: int) -> Batch:
    """The rows that a process embeds."""
    if len(batch) % processes:
        problem = f"{len(batch)} rows cannot be divided among {processes} processes"
        raise InputError("batch", problem, f"a multiple of {processes}", "change the batch size")
    size = len(batch) // processes
    return batch.part(process * size, (process + 1) * size)


def _embed(method: Method, chunk: Batch, accelerator: Accelerator) -> Embeddings:
    with accelerator.autocast():
        return tuple(vectors.float() for vectors in method.embed(chunk))


def _flow_back(vectors: Embeddings, grads: Sequence[Tensor | None]) -> None:
    """From the gradients of vectors to those of parameters; vectors of frozen parts have no graph."""
    pairs = [(out, grad) for out, grad in zip(vectors, grads, strict=True) if out.requires_grad and grad is not None]
    torch.autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])


def _seeded(batch: Batch, process: int, chunk: int) -> Callable[[], object]:
    """A function that seeds torch for this chunk of this step, for the first pass and for the second."""
    state = np.random.SeedSequence([*batch.key, process + 1, chunk]).generate_state(1, np.uint64)
    return lambda: torch.manual_seed(int(state[0]))


def average_gradients(method: Learner, accelerator: Accelerator) -> None:
    """Average the gradients of all processes, in one exchange."""
    if accelerator.num_processes == 1:
        return
    # A parameter that no loss reaches has no gradient in any process and must not get one: it would be decayed.
    gradients = {p: p.grad for p in learning(method).values() if p.grad is not None}
    flat = accelerator.reduce(torch.cat([grad.flatten() for grad in gradients.values()]), reduction="mean")
    for parameter, grad in zip(gradients, flat.split([p.numel() for p in gradients]), strict=True):
        parameter.grad = grad.view_as(parameter)


def from_main(accelerator: Accelerator, value: Any) -> Any:
    """The main process's value, in all processes."""
    values = [value]
    if accelerator.num_processes > 1:
        broadcast_object_list(values)
    return values[0]


def keep_freed_memory() -> None:
    """Have malloc keep up to a gigabyte of freed memory; does nothing where there is no glibc."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(MMAP_MAX, 0)
        libc.mallopt(TRIM_THRESHOLD, KEPT)
