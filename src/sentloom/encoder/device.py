"""The device and precision of models, as set by `--device` and `--precision`.

The choice applies inside `running_on`, because models are loaded deep inside recipes and fits. By default, models run
on a GPU if there is one, in fp32; training follows `accelerate launch`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple

import torch

from sentloom.errors import InputError

Precision = Literal["fp32", "bf16"]
Device = str | torch.device
PRECISIONS = ("fp32", "bf16")
CPU = torch.device("cpu")


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
