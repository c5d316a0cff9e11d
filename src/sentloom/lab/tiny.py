"""A recipe at the scale tiny: the same rows and stages on small models, few sentences and few steps.

It shows that every row runs from end to end. Its scores say nothing about the paper.
"""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSequenceClassification

from sentloom.data.inputs import hub_name
from sentloom.encoder.loading import quiet
from sentloom.encoder.pooling import Pooling
from sentloom.errors import InputError
from sentloom.files import new_folder
from sentloom.lab.baselines.names import parse_baseline
from sentloom.lab.init_model import build_model
from sentloom.lab.recipe import read_recipe
from sentloom.lab.recipe_checks import VARIABLE
from sentloom.lab.tiny_data import write_tiny_data
from sentloom.methods.settings import Settings
from sentloom.pipeline.plan import Plan, Recipe
from sentloom.pipeline.stages import DataStage, Retrieve, Stage, Views
from sentloom.views.settings import BackTranslation, MaskFill, Synonyms
from sentloom.views.wordnet import is_installed

STEPS, BATCH, CHUNK = 2, 4, 2
LEAST_SHARE = 0.5  # of a few rows, a smaller share may be none
MODELS = {  # by name: architecture, layers and width
    "bert": ("bert", 3, 32),
    "bert-large": ("bert", 3, 64),
    "bert-deep": ("bert", 24, 32),  # for rows that name layers
    "t5": ("t5", 2, 32),
}
NARROW = {"head_width": 64, "predictor_width": 2, "projection": 32}
MOST = {**NARROW, "queue": 16, "measured": 8, "every": STEPS, "rows": 24, "length": 12}
OTHERS = {  # filters that a writer of random weights would never pass, and some held-out rows of a few
    "held_out": 0.3,
    "threshold": 0.0,
    "source_words": 0,
    "words": 0,
    "substring": False,
}


def tiny_recipe(path: Path, folder: Path, data: Path | None) -> Recipe:
    """Read a recipe at the scale tiny. Its models and data are written to `folder`, and used again if they are there.

    With a data folder, sentences and sets come from it as far as it has them.
    """
    folder = folder.absolute()
    values = write_tiny_data(folder / data_folder(data), data)
    models = write_tiny_models(folder / "models", Path(values["RAW"]))
    variables = values | dict.fromkeys(("CHINESE", "SIMCSE_CN", "OURS_CN"), models["bert-large"])
    unknown = [name for name, _ in VARIABLE.findall(path.read_text("utf-8")) if name not in variables]
    if unknown:
        known = f"a recipe with the variables {', '.join(variables)}"
        raise InputError(str(path), f"there is no tiny value for ${{{unknown[0]}}}", known, "run it without --scale")
    read = read_recipe(path, variables=variables)
    plans = {name: tiny_plan(plan, models, values["SENTLOOM_DATA"]) for name, plan in read.plans.items()}
    return replace(read, plans=plans)


def data_folder(given: Path | None) -> str:
    """The name of the folder for tiny data, another one for every data folder that it comes from."""
    return f"data-{hashlib.sha256(str(given.resolve()).encode()).hexdigest()[:8]}" if given else "data"


def write_tiny_models(folder: Path, texts: Path) -> dict[str, str]:
    """Write models of random weights unless they are there; returns their folders by name."""
    for name, (family, layers, width) in MODELS.items():
        if not (folder / name).is_dir():
            lines = texts.read_text("utf-8").splitlines()
            build_model(folder / name, family, lines, vocabulary=400, layers=layers, width=width)
    for name, kind in (("masked", AutoModelForMaskedLM), ("judge", AutoModelForSequenceClassification)):
        if not (folder / name).is_dir():
            _with_head(folder / "bert", folder / name, kind)
    return {name: str(folder / name) for name in (*MODELS, "masked", "judge")}


def _with_head(source: Path, target: Path, kind: Any) -> None:
    """The small BERT with the head of another task, with random weights."""
    torch.manual_seed(0)
    labels = dict(enumerate(("contradiction", "entailment", "neutral")))
    model = kind.from_config(AutoConfig.from_pretrained(source, id2label=labels))
    with new_folder(target) as part, quiet():
        model.save_pretrained(part)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (part / name).write_bytes((source / name).read_bytes())


def tiny_plan(plan: Plan, models: dict[str, str], sets: str) -> Plan:
    """The same plan: small models for those of the hub, few steps, one seed, sets of a few rows, linear classifiers."""
    deep = deepest(plan) > MODELS["bert"][1]

    def small(name: str) -> str:
        return models[stand_in(name, deep)] if hub_name(name) and not Path(name).exists() else name

    baseline = parse_baseline(plan.base or "")
    base = str(baseline.located(small)) if baseline else plan.base and small(plan.base)
    return replace(
        plan,
        base=base,
        stages=tuple(tiny_stage(stage.located(small), models) for stage in plan.stages),
        seeds=plan.seeds[:1],
        select=plan.select and plan.select.model_copy(update={"data": sets, "every": 1}),
        evaluate=plan.evaluate and plan.evaluate.model_copy(update={"data": sets, "hidden": 0, "fast": True}),
    )


def deepest(plan: Plan) -> int:
    """The greatest number of a layer that a plan names."""
    pooled = Pooling.parse(plan.pooling).layers if plan.pooling else ()
    options = [layer for stage in plan.stages for layer in getattr(stage.options, "layers", None) or ()]
    return max((*pooled, *options), default=0)


def stand_in(name: str, deep: bool = False) -> str:
    """The small model for a model of the hub."""
    if "t5" in name.casefold():
        return "t5"
    if deep:
        return "bert-deep"
    return "bert-large" if "large" in name.casefold() else "bert"


def tiny_stage(stage: Stage, models: dict[str, str]) -> Stage:
    """A stage with few steps and few rows."""
    changed: dict[str, Any] = {"options": tiny_options(stage, models)}
    if isinstance(stage, Retrieve):
        changed["model"] = models["judge"]
    if stage.settings is not None:
        changed["settings"] = tiny_settings(stage.settings)
    if isinstance(stage, DataStage):
        changed["data_share"] = max(stage.data_share, LEAST_SHARE)
    return stage.model_copy(update=changed)


def tiny_settings(settings: Settings) -> Settings:
    """Two steps of a few rows; a batch in chunks stays one."""
    chunk = None if settings.chunk is None else CHUNK
    return settings.model_copy(update={"steps": STEPS, "batch": min(BATCH, settings.batch), "chunk": chunk})


def tiny_options(stage: Stage, models: dict[str, str]) -> BaseModel:
    """Options with small queues and heads, loose filters, and makers of views that are here."""
    options = stage.options
    if isinstance(stage, Views):
        return tiny_views(options, models["masked"])
    names = type(options).model_fields
    fewer = {key: most for key, most in MOST.items() if key in names and (getattr(options, key) or 0) > most}
    if getattr(options, "rows", 0) is None:
        fewer["rows"] = MOST["rows"]
    return options.model_copy(update=fewer | {key: value for key, value in OTHERS.items() if key in names})


def tiny_views(options: BaseModel, masked: str) -> BaseModel:
    """Views by the embedded translator, or by a small masked language model, also if WordNet is not installed."""
    if isinstance(options, BackTranslation):
        return BackTranslation()
    if isinstance(options, MaskFill) or (isinstance(options, Synonyms) and not is_installed()):
        return MaskFill(model=masked, share=options.share, seed=options.seed)
    return options
