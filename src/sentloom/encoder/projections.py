"""Load a projection from a folder of sentence-transformers' Dense module."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from sentloom.encoder.heads import Projection
from sentloom.encoder.model_files import WEIGHTS, Shapes, as_sizes, inside, read_json, read_shapes, wrong_value
from sentloom.encoder.pretrained import check_finite, loading
from sentloom.errors import ModelError

ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Tanh": "tanh",
}
TANH = "torch.nn.modules.activation.Tanh"  # sentence-transformers' default


def load_projection(folder: Path) -> Projection:
    """Load a Dense layer on sentence embeddings, with Identity or Tanh, without a residual."""
    settings, path = inside(folder, "config.json"), inside(folder, WEIGHTS)
    config = read_json(settings)
    _check_config(settings, config)
    width_in, width_out, bias = config["in_features"], config["out_features"], config.get("bias", True)
    declared = {"linear.weight": (width_out, width_in)} | ({"linear.bias": (width_out,)} if bias else {})
    _check_shapes(settings, read_shapes(path), declared)
    activation = ACTIVATIONS[config.get("activation_function", TANH)]
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
    if not (isinstance(activation, str) and activation in ACTIVATIONS):
        raise wrong_value(path, "activation_function", activation, f"one of {', '.join(ACTIVATIONS)}")
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
