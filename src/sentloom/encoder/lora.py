"""Low-rank adapters (LoRA: Hu et al., 2022) through peft: few weights learn, and are added to the others in the end."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from safetensors.torch import save_file
from torch import nn
from transformers import PreTrainedModel

from sentloom.encoder.encoder import Encoder
from sentloom.errors import MissingPart
from sentloom.files import new_folder

Module = TypeVar("Module", bound=nn.Module)


def add_lora(encoder: Encoder, rank: int, alpha: float) -> None:
    """Put adapters beside the linear layers of an encoder's backbone. Heads keep learning."""
    add_adapters(encoder.backbone.model, rank, alpha)


def add_adapters(model: PreTrainedModel, rank: int, alpha: float) -> None:
    """Freeze a model, and put an adapter beside each linear layer: W + alpha/rank B A, with B = 0 at first.

    The head over the vocabulary, which may share its weights with the embeddings, gets none. The adapters' A starts
    from torch's random state.
    """
    head = model.get_output_embeddings()
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Linear) and module is not head]
    require_peft().inject_adapter_in_model(_config(layers, rank, alpha), model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)


def _config(layers: Sequence[str], rank: int, alpha: float) -> Any:
    named = {"target_modules": list(layers), "lora_dropout": 0.0, "bias": "none"}
    return require_peft().LoraConfig(r=rank, lora_alpha=alpha, **named)


def save_adapters(model: PreTrainedModel, folder: Path) -> None:
    """Write the adapters alone, in half precision, in the format of peft: `PeftModel.from_pretrained(base, folder)`."""
    layers: dict[str, Any] = {name: module for name, module in model.named_modules() if hasattr(module, "lora_A")}
    first = next(iter(layers.values()))
    ((rank, alpha),) = {(first.r[name], first.lora_alpha[name]) for name in first.active_adapters}
    tensors = {
        f"base_model.model.{name}".replace(".default.", "."): parameter.detach().cpu().half().contiguous()
        for name, parameter in model.named_parameters()
        if "lora_" in name
    }
    with new_folder(folder) as part:
        _config(list(layers), rank, alpha).save_pretrained(part)
        save_file(tensors, part / "adapter_model.safetensors", metadata={"format": "pt"})


def without_lora(encoder: Encoder) -> Encoder:
    """A copy whose weights have the adapters added to them; the encoder itself if it has none."""
    return without_adapters(encoder, Encoder.copy)


def without_adapters(model: Module, copied: Callable[[Module], Module] = copy.deepcopy) -> Module:
    """A copy of any model with its adapters added to its weights; the model itself if it has none."""
    if not any("lora_" in name for name, _ in model.named_parameters()):
        return model
    merged = copied(model)
    for name, module in list(merged.named_modules()):
        if hasattr(module, "lora_A"):
            module.merge(safe_merge=True)
            place, _, last = name.rpartition(".")
            setattr(merged.get_submodule(place), last, module.get_base_layer())
    return merged.requires_grad_(True)


def require_peft() -> ModuleType:
    """The package; if it is not installed, the error says how to install it."""
    try:
        import peft
    except ImportError:
        raise MissingPart("lora", "peft is not installed", "", 'pip install "sentloom[lora]"') from None
    package: ModuleType = peft
    return package
