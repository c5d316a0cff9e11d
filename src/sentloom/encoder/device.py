"""The device and precision of models, as set by `--device` and `--precision`, and the threads that run packs.

The choice applies inside `running_on`, because models are loaded deep inside recipes and fits. By default, models run
on a GPU if there is one, in fp32; training follows `accelerate launch`.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple

import torch

from sentloom.errors import InputError

Precision = Literal["fp32", "bf16"]
Device = str | torch.device
PRECISIONS = ("fp32", "bf16")
CPU = torch.device("cpu")
MOST_WORKERS = 16  # beyond that, the GIL is the limit


class Choice(NamedTuple):
    """The chosen device and precision; None means the default."""

    device: str | None = None
    precision: Precision | None = None


DEFAULT = Choice()
_chosen: ContextVar[Choice] = ContextVar("device and precision", default=DEFAULT)


@contextmanager
def running_on(device: Device | None, precision: str | None) -> Iterator[None]:
    """Load and run models on a device and in a precision; None keeps the choice of an outer call."""
    outer = _chosen.get()
    token = _chosen.set(Choice(_checked(device) or outer.device, _checked_precision(precision) or outer.precision))
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen() -> Choice:
    """Return the current choice."""
    return _chosen.get()


def device_for(device: Device | None = None) -> torch.device:
    """Return the named device, else the chosen one, else a GPU if there is one."""
    name = _checked(device) or _chosen.get().device
    return torch.device(name) if name else torch.accelerator.current_accelerator(check_available=True) or CPU


def precision_for(precision: str | None = None) -> Precision:
    """Return the named precision of inference, else the chosen one, else fp32."""
    return _checked_precision(precision) or _chosen.get().precision or "fp32"


def fast_precision(device: torch.device) -> Precision:
    """bf16 on a CPU with instructions for it, where matrix products take half the time; else fp32."""
    known = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    return "bf16" if any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16")) else "fp32"


def _checked(name: Device | None) -> str | None:
    if name is None:
        return None
    name = str(name)
    try:
        if torch.empty(0, device=name).is_meta:
            raise RuntimeError("it holds no numbers")
    except (RuntimeError, AssertionError, NotImplementedError):
        fix = "for a GPU, use cuda" if name.casefold() == "gpu" else "choose another device, or leave it out"
        problem = f"{name!r} is not a device of this machine"
        raise InputError("device", problem, " or ".join(_devices()), fix) from None
    return name


def _devices() -> list[str]:
    """The devices of this machine."""
    kind = torch.accelerator.current_accelerator(check_available=True)
    if kind is None:
        return ["cpu"]
    count = torch.accelerator.device_count()
    return ["cpu", kind.type, *(f"{kind.type}:{number}" for number in range(1, count))]


def _checked_precision(name: str | None) -> Precision | None:
    if name is None or name in PRECISIONS:
        return name  # type: ignore[return-value]
    raise InputError("precision", f"{name!r} is unknown", f"one of {', '.join(PRECISIONS)}", "choose one of these")


def worker_count(device: torch.device) -> int:
    """How many packs run at the same time: one per thread on a CPU, a single one elsewhere."""
    return min(torch.get_num_threads(), MOST_WORKERS) if device.type == "cpu" else 1


@contextmanager
def pack_workers(device: torch.device) -> Iterator[Executor]:
    """Yield an executor with `worker_count` workers."""
    if device.type != "cpu":
        single = ThreadPoolExecutor(1)
        try:
            yield single
        finally:
            single.shutdown(cancel_futures=True)
        return
    _THREADS.enter()
    threads = max(1, _THREADS.before // MOST_WORKERS)
    executor = ThreadPoolExecutor(
        min(_THREADS.before, MOST_WORKERS), initializer=torch.set_num_threads, initargs=(threads,)
    )
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)  # Ctrl-C does not wait for queued packs
        _THREADS.leave()


class _Threads:
    """Lowers torch's global number of threads on the first call and restores it after the last one."""

    def __init__(self) -> None:
        self._lock, self._calls, self.before = threading.Lock(), 0, 0

    def enter(self) -> None:
        with self._lock:
            if not self._calls:
                self.before = torch.get_num_threads()
                torch.set_num_threads(max(1, self.before // MOST_WORKERS))
            self._calls += 1

    def leave(self) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls:
                torch.set_num_threads(self.before)


_THREADS = _Threads()


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Restore torch's number of threads in the end: CTranslate2 sets it to its own when it opens a model."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
