"""Presets are data: `simcse.yaml` beside `simcse.py` has those of simcse."""

from pathlib import Path

import yaml

from sentloom.errors import InputError, checked
from sentloom.methods.method import Learner, Presets
from sentloom.methods.settings import Settings

# Of the encoder: pooling is for a base that has none of its own, prompt for a recipe that states none.
ENCODER_KEYS = {"pooling", "max_length", "prompt"}


def read_presets(module: str) -> Presets:
    """The presets of the method in this file, from the YAML file beside it: call it with `__file__`."""
    presets: Presets = yaml.safe_load(Path(module).with_suffix(".yaml").read_text("utf-8"))
    return presets


def check_presets(kind: type[Learner]) -> None:
    """Refuse presets without `default`, with unknown keys or with values that are not valid."""
    if "default" not in kind.PRESETS:
        raise InputError(f"method {kind.NAME}", "it has no preset 'default'", "", "add it to PRESETS")
    for name, values in kind.PRESETS.items():
        where = f"method {kind.NAME}, preset {name}"
        known = {*kind.Options.model_fields, *Settings.model_fields, *ENCODER_KEYS}
        for key in values.keys() - known:
            raise InputError(where, f"the key {key!r} is unknown", f"one of {', '.join(sorted(known))}", "correct it")
        for model in (kind.Options, Settings):
            checked(model, where, {key: value for key, value in values.items() if key in model.model_fields})
