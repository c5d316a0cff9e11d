"""All methods by name, ours and those of installed packages, and their presets.

Presets are data: `simcse.yaml` beside `simcse.py` has those of simcse.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import yaml

from sentloom.errors import InputError, checked
from sentloom.methods.method import Learner, Method, Options, Presets
from sentloom.methods.settings import Settings
from sentloom.plugins import offered

GROUP = "sentloom.methods"
# Of the encoder: pooling is for a base that has none of its own, prompt for a recipe that states none.
ENCODER_KEYS = {"pooling", "max_length", "prompt"}
BUILT_IN = {
    "simcse": "simcse:Simcse",
    "self-guided": "self_guided:SelfGuided",
    "bootstrapped": "bootstrapped:Bootstrapped",
    "is-bert": "is_bert:IsBert",
    "mlm": "mlm:Mlm",
    "tsdae": "tsdae:Tsdae",
    "contrastive-bt": "contrastive_bt:ContrastiveBt",
    "contrastive": "contrastive:Contrastive",
    "margin-mse": "margin_mse:MarginMse",
    "distill": "distill:Distill",
    "supervised": "supervised:Supervised",
    "cosent": "cosent:Cosent",
    "angle": "angle:Angle",
    "nli-classification": "nli_classification:NliClassification",
    "cross-lingual": "cross_lingual:CrossLingual",
    "mse-distillation": "mse_distillation:MseDistillation",
    "teacher": "teacher:Teacher",
}


class Registry(Mapping[str, type[Method]]):
    """Iterating gives the names without importing any method; `registry[name]` imports one and checks it."""

    def __getitem__(self, name: str) -> type[Method]:
        return load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(offers())

    def __len__(self) -> int:
        return len(offers())

    def __contains__(self, name: object) -> bool:
        return name in offers()


METHODS = Registry()


@cache
def offers() -> dict[str, list[EntryPoint]]:
    """Where each method is defined. A name that is built in cannot be replaced by a package."""
    by_name = {name: [EntryPoint(name, f"{__package__}.{place}", GROUP)] for name, place in BUILT_IN.items()}
    for offer in offered(GROUP):
        if offer.name not in BUILT_IN and offer not in by_name.setdefault(offer.name, []):
            by_name[offer.name].append(offer)
    return by_name


@cache
def load(name: str) -> type[Method]:
    """Import a method and check that it keeps the contract."""
    if len(offers()[name]) > 1:
        packages = " and ".join(_origin(offer) for offer in offers()[name])
        raise InputError(f"method {name}", f"{packages} both offer it", "", "uninstall one of them")
    (offer,) = offers()[name]
    try:
        kind = offer.load()
    except Exception as error:  # whatever the module of another package raises
        raise _broken(name, offer, f"which cannot be imported ({error!r})") from error
    if problem := _problem(name, kind):
        raise _broken(name, offer, f"but {problem}")
    check_presets(kind)
    method: type[Method] = kind
    return method


def _broken(name: str, offer: EntryPoint, problem: str) -> InputError:
    problem = f"{_origin(offer)} offers it as {offer.value}, {problem}"
    return InputError(f"method {name}", problem, "", "repair the package or uninstall it")


def _problem(name: str, kind: Any) -> str | None:
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        return "that is not a subclass of sentloom.methods.Method"
    if getattr(kind, "NAME", None) != name:
        return f"its NAME is {getattr(kind, 'NAME', None)!r}"
    options: Any = kind.Options
    if not (isinstance(options, type) and issubclass(options, Options)):
        return "its Options are not a subclass of sentloom.methods.Options"
    return None


def _origin(offer: EntryPoint) -> str:
    return f"package {offer.dist.name}" if offer.dist else "sentloom"


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
