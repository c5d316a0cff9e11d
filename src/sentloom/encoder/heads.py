"""What follows the pooling, in training and inference: projections, unit length, fewer dimensions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from sentloom.encoder.model_files import WEIGHTS, Shapes, as_sizes, inside, read_json, read_shapes, wrong_value
from sentloom.encoder.pretrained import check_finite, loading
from sentloom.errors import InputError, ModelError

if TYPE_CHECKING:
    from sentloom.encoder.encoder import Encoder, Vectors

ACTIVATIONS: dict[str, type[nn.Module]] = {"identity": nn.Identity, "tanh": nn.Tanh}
DENSE_ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Tanh": "tanh",
}
TANH = "torch.nn.modules.activation.Tanh"  # sentence-transformers' default
DIMENSIONS = "matryoshka_dimensions"  # in the configuration: the dimensions that a model was trained for


class Projection(nn.Module):
    """A linear layer and an activation, with the same weight names as sentence-transformers' Dense."""

    def __init__(self, width_in: int, width_out: int, *, bias: bool = True, activation: str = "identity") -> None:
        super().__init__()
        self.linear = nn.Linear(width_in, width_out, bias=bias)
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: Tensor) -> Tensor:
        """(n, width_in) -> (n, width_out)."""
        result: Tensor = self.activation(self.linear(x))
        return result


def load_projection(folder: Path) -> Projection:
    """Load a Dense layer on sentence embeddings, with Identity or Tanh, without a residual."""
    settings, path = inside(folder, "config.json"), inside(folder, WEIGHTS)
    config = read_json(settings)
    _check_config(settings, config)
    width_in, width_out, bias = config["in_features"], config["out_features"], config.get("bias", True)
    declared = {"linear.weight": (width_out, width_in)} | ({"linear.bias": (width_out,)} if bias else {})
    _check_shapes(settings, read_shapes(path), declared)
    activation = DENSE_ACTIVATIONS[config.get("activation_function", TANH)]
    head = Projection(width_in, width_out, bias=bias, activation=activation)
    with loading(path, "the layer"):
        head.load_state_dict(load_file(path))
    check_finite(head, path)
    return head


def _check_config(path: Path, config: dict[str, Any]) -> None:
    for key in ("in_features", "out_features"):
        if not (type(config.get(key)) is int and config[key] >= 1):
            raise wrong_value(path, key, config.get(key), "a whole number, 1 or more")
    if type(config.get("bias", True)) is not bool:
        raise wrong_value(path, "bias", config["bias"], "true or false")
    activation = config.get("activation_function", TANH)
    if not (isinstance(activation, str) and activation in DENSE_ACTIVATIONS):
        raise wrong_value(path, "activation_function", activation, f"one of {', '.join(DENSE_ACTIVATIONS)}")
    if config.get("use_residual") not in (None, False):
        raise wrong_value(path, "use_residual", config["use_residual"], "false, because residuals are not supported")
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise wrong_value(path, key, config[key], "sentence_embedding")


def _check_shapes(path: Path, shapes: Shapes, declared: Shapes) -> None:
    """Refuse weights other than those that the configuration declares, before reading them."""
    if shapes.keys() != declared.keys():
        problem = f"{WEIGHTS} contains the tensors {', '.join(sorted(shapes))[:200] or '(none)'}"
        raise ModelError(str(path), problem, f"{' and '.join(declared)}", "save the model again")
    for name, shape in shapes.items():
        if shape != declared[name]:
            problem = f"{name} in {WEIGHTS} has the shape {as_sizes(shape)}"
            expected = f"{as_sizes(declared[name])}, as in config.json"
            raise ModelError(str(path), problem, expected, "save the model again")


def normalize(x: Tensor) -> Tensor:
    """Scale rows to unit length; a zero row stays zero."""
    return torch.nn.functional.normalize(x, dim=-1)


def cut(vectors: "Vectors", dimension: int, unit_length: bool) -> "Vectors":
    """The first `dimension` dimensions of vectors, scaled to unit length if asked for."""
    short = np.ascontiguousarray(vectors[..., :dimension])
    return short / np.maximum(np.linalg.norm(short, axis=-1, keepdims=True), 1e-12) if unit_length else short


def check_cut(encoder: "Encoder", dimension: int) -> None:
    """Refuse a dimension that the encoder was not trained for."""
    known = trained_dimensions(encoder)
    if dimension not in (*known, encoder.dimension):
        trained = (
            f"one of {', '.join(map(str, known))}" if known else f"{encoder.dimension}: it was trained for no other"
        )
        fix = "train with the option dimensions, or cut the vectors yourself if the loss in quality is acceptable"
        raise InputError("dimension", f"the model was not trained for {dimension}", trained, fix)


def trained_dimensions(encoder: "Encoder") -> tuple[int, ...]:
    """The dimensions that the encoder was trained for, largest first; none for an ordinary encoder."""
    recorded = getattr(encoder.backbone.model.config, DIMENSIONS, None)
    if not isinstance(recorded, list | tuple) or not all(type(dimension) is int for dimension in recorded):
        return ()
    return tuple(sorted({dimension for dimension in recorded if 1 <= dimension <= encoder.dimension}, reverse=True))


def record_dimensions(encoder: "Encoder", dimensions: Sequence[int] | None) -> None:
    """Record in the encoder which dimensions it was trained for; None stands for its own alone."""
    config = encoder.backbone.model.config
    if dimensions:
        setattr(config, DIMENSIONS, sorted(dimensions, reverse=True))
    elif hasattr(config, DIMENSIONS):
        delattr(config, DIMENSIONS)


def check_dimensions(where: str, encoder: "Encoder", dimensions: Sequence[int]) -> None:
    """Refuse to train for more dimensions than vectors have."""
    if max(dimensions) > encoder.dimension:
        problem = f"{max(dimensions)} dimensions of vectors that have {encoder.dimension}"
        raise InputError(where, problem, f"{encoder.dimension} or fewer", "correct the option dimensions")
