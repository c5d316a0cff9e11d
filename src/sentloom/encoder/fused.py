"""BERT-like models on a CPU in inference: the same forward pass in fewer and faster calls.

One product computes queries, keys and values; GELU and the residual sums are part of the products; and the weights are
laid out the way oneDNN reads them, once per model. transformers' modules still do everything else: training, other
families, other devices, bfloat16.

Shapes: T tokens of a pack, padded to T' so that few shapes occur, n sentences, L tokens of a sentence, H heads, D width
of a head, d hidden width.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from sentloom.encoder.packing import Pack, PackedRun

FAMILIES = {"bert", "camembert", "roberta", "xlm-roberta"}  # models whose modules have BERT's names
STEPS = 16  # sizes T' between a power of two and the next: oneDNN compiles a kernel for each
LEAST_STEP = 8  # tokens


def can_fuse(model: PreTrainedModel) -> bool:
    """Whether this model, as it is now, can run here: its family and modules, device and dtype, and the mode fit."""
    config = model.config
    if not torch.is_inference_mode_enabled() or torch.is_autocast_enabled("cpu") or config.model_type not in FAMILIES:
        return False
    fits = config.hidden_act == "gelu" and not getattr(config, "is_decoder", False)
    fits = fits and model.device.type == "cpu" and model.dtype is torch.float32 and torch.backends.mkldnn.is_available()
    return fits and all(type(linear) is nn.Linear for block in model.encoder.layer for linear in _linears(block))


def fused_states(model: PreTrainedModel, pack: Pack, first_position: int, layers: Sequence[int]) -> list[Tensor]:
    """The states (T, d) of each requested layer; 0 is the embedding output, -1 the last block."""
    fused, tokens = _fused(model), pack.ids.shape[1]
    numbers = [layer % (len(fused.layers) + 1) for layer in layers]
    padding = (0, padded(tokens) - tokens)
    types = None if pack.types is None else F.pad(pack.types[0], padding)
    states = fused.embed(F.pad(pack.ids[0], padding), F.pad(pack.positions[0], padding) + first_position, types)
    by_layer = {0: states}
    for number, layer in enumerate(fused.layers, start=1):
        states = layer(states, pack.runs)
        if number in numbers:
            by_layer[number] = states
    return [by_layer[layer][:tokens] for layer in numbers]


def padded(tokens: int) -> int:
    """The size T' of a pack with this many tokens: at most a sixteenth larger, or by less than eight tokens."""
    step = max(LEAST_STEP, (1 << (tokens.bit_length() - 1)) // STEPS)
    return -(-tokens // step) * step


def _linears(block: Any) -> tuple[nn.Module, ...]:
    """The linear layers of a block. While adapters are trained (LoRA), others are in their places."""
    own, attention = block.attention.self, block.attention.output.dense
    return own.query, own.key, own.value, attention, block.intermediate.dense, block.output.dense


class _Linear:
    """A product x W^T + b, (T', in) -> (T', out), with the weights in oneDNN's layout."""

    def __init__(self, *parts: nn.Module) -> None:
        self.weight = torch.ops.mkldnn._reorder_linear_weight(torch.cat([_tensor(part, "weight") for part in parts]))
        self.bias = torch.cat([_tensor(part, "bias") for part in parts])

    def __call__(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")

    def gelu(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "gelu", [], "none")

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise.binary(x, residual, self.weight, self.bias, "add")


class _Norm:
    """Layer normalisation."""

    def __init__(self, module: Any) -> None:
        self.weight, self.bias, self.eps = _tensor(module, "weight"), _tensor(module, "bias"), float(module.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class _Layer:
    """One block: attention within each sentence, then the feed-forward network, each with its residual and norm."""

    def __init__(self, block: Any) -> None:
        query, key, value, out, up, down = _linears(block)
        self.heads: int = block.attention.self.num_attention_heads
        self.qkv, self.out, self.up, self.down = _Linear(query, key, value), _Linear(out), _Linear(up), _Linear(down)
        self.attended, self.done = _Norm(block.attention.output.LayerNorm), _Norm(block.output.LayerNorm)

    def __call__(self, x: Tensor, runs: tuple[PackedRun, ...]) -> Tensor:
        x = self.attended(self.out.plus(self.attend(self.qkv(x), runs), x))
        return self.done(self.down.plus(self.up.gelu(x), x))

    def attend(self, qkv: Tensor, runs: tuple[PackedRun, ...]) -> Tensor:
        """Attention of all runs: (T', 3d) -> (T', d), zero where nothing but padding is."""
        width = qkv.shape[1] // 3
        out = qkv.new_zeros(len(qkv), width)
        for run in runs:
            tokens = slice(run.start, run.start + run.count * run.length)
            parts = qkv[tokens].view(run.count, run.length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            q, k, v = parts  # (n, H, L, D)
            attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)  # (n, L, H, D)
            out[tokens].view(run.count, run.length, self.heads, -1).copy_(attended)
        return out


@dataclass(frozen=True)
class _FusedBert:
    """The weights of a model in the form that this module needs. It holds no module, so that the model can go."""

    words: Tensor
    places: Tensor  # position embeddings, with that of the first token type
    types: Tensor  # token type embeddings, as differences from the first
    norm: _Norm
    layers: tuple[_Layer, ...]

    @classmethod
    def of(cls, model: Any) -> "_FusedBert":
        embeddings = model.embeddings
        words, positions, types = (
            _tensor(getattr(embeddings, f"{name}_embeddings"), "weight") for name in ("word", "position", "token_type")
        )
        layers = tuple(_Layer(block) for block in model.encoder.layer)
        return cls(words, positions + types[0], types - types[0], _Norm(embeddings.LayerNorm), layers)

    def embed(self, ids: Tensor, positions: Tensor, types: Tensor | None) -> Tensor:
        embedded = F.embedding(ids, self.words) + F.embedding(positions, self.places)
        return self.norm(embedded if types is None else embedded + F.embedding(types, self.types))


class _Stamp:
    """Tells whether a model still has the weights that were laid out.

    Torch counts changes in place, but not those of fused optimizers, so that one number of each parameter is compared
    too: a training step changes all of them.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.places = _places(model)
        self.first = [weight.detach()[(0,) * weight.dim()] for weight in model.parameters()]  # views, not copies
        self.values = torch.stack(self.first)

    def fits(self, model: PreTrainedModel) -> bool:
        return self.places == _places(model) and torch.equal(torch.stack(self.first), self.values)


def _places(model: PreTrainedModel) -> list[tuple[int, int]]:
    """Where each parameter is, and how often torch has seen it change in place."""
    return [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in model.parameters()]


_FUSED: WeakKeyDictionary[PreTrainedModel, tuple[_Stamp, _FusedBert]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _fused(model: PreTrainedModel) -> _FusedBert:
    """The model in its fused form: made on the first call, and again after its weights have changed."""
    with _LOCK:
        known = _FUSED.get(model)
        if known is None or not known[0].fits(model):
            known = _FUSED[model] = _Stamp(model), _FusedBert.of(model)
    return known[1]


def _tensor(module: nn.Module, name: str) -> Tensor:
    tensor: Tensor = getattr(module, name).detach()
    return tensor
