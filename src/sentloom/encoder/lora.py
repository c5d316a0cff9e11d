"""Low-rank adapters (LoRA: Hu et al., 2022) through peft: few weights learn, and are added to the others in the end."""

import copy
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from torch import nn
from transformers import PreTrainedModel

from sentloom.encoder.encoder import Encoder
from sentloom.errors import MissingPart

Module = TypeVar("Module", bound=nn.Module)


def add_lora(encoder: Encoder, rank: int, alpha: float) -> None:
    """Put adapters beside the linear layers of an encoder's backbone. Heads keep learning."""
    add_adapters(encoder.backbone.model, rank, alpha)


def add_adapters(model: PreTrainedModel, rank: int, alpha: float) -> None:
    """Freeze a model, and put an adapter beside each linear layer: W + alpha/rank B A, with B = 0 at first.

    The head over the vocabulary, which may share its weights with the embeddings, gets none. The adapters' A starts
    from torch's random state.
    """
    peft = require_peft()
    head = model.get_output_embeddings()
    layers = [name for name, one in model.named_modules() if isinstance(one, nn.Linear) and one is not head]
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=layers, lora_dropout=0.0, bias="none")
    peft.inject_adapter_in_model(config, model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)


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
    found: ModuleType = peft
    return found
