"""Values that training processes exchange, besides tensors."""

from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list


def from_main(accelerator: Accelerator, value: Any) -> Any:
    """The main process's value, in all processes."""
    values = [value]
    if accelerator.num_processes > 1:
        broadcast_object_list(values)
    return values[0]
