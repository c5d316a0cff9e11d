"""The scale `tiny` of `reproduce`: the tables of the papers on small models of random weights and a few sentences.

Every file that a table trains or is scored on comes from triplets of sentences: those that are shipped, or those of a
data folder. The first triplets are trained on, the others scored on. Sets that the data folder has are cut to a few
rows, the others are made up.
"""

import gzip
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSequenceClassification

from sentloom.data.inputs import hub_name
from sentloom.data.shapes import Shape
from sentloom.encoder.loading import quiet
from sentloom.encoder.locate import is_model
from sentloom.encoder.pooling import Pooling
from sentloom.engine.plan import Plan, Recipe
from sentloom.engine.stages import DataStage, Retrieve, Stage, Views
from sentloom.errors import InputError
from sentloom.evaluation.set_source import SUFFIXES, SetPart
from sentloom.files import new_folder
from sentloom.lab.baselines.names import parse_baseline
from sentloom.lab.init_model import Size, build_model
from sentloom.lab.recipe import read_recipe
from sentloom.lab.recipe_checks import VARIABLE
from sentloom.lab.suites import domain, multilingual
from sentloom.lab.suites.probed_sets import ProbedSet
from sentloom.lab.suites.sts import AFS_PART, AFS_TOPICS, STS_PARTS
from sentloom.lab.suites.transfer import SENTGLUE_SETS, TRANSFER_SETS
from sentloom.methods.settings import Settings
from sentloom.writing.views.settings import BackTranslation, MaskFill, Synonyms
from sentloom.writing.views.synonyms import is_installed

# Training
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
LOOSE = {  # filters that even a writer of random weights passes, and a share that holds out some of a few rows
    "held_out": 0.3,
    "threshold": 0.0,
    "source_words": 0,
    "words": 0,
    "substring": False,
}

# Data
TRAINED, SCORED, ROWS = 40, 60, 60  # triplets, and the rows of a set
TRAINING = {  # by environment variable: what a recipe reads
    "NLI": "nli.tsv",
    "NLI_ZH": "nli.zh.tsv",
    "RAW": "sentences.txt",
    "BOOKS": "books.txt",
    **dict.fromkeys(("ASKUBUNTU", "CQADUPSTACK", "TWITTER", "PUBMED"), "domain.txt"),
    **dict.fromkeys(("ELI5", "YAHOO"), "qa.tsv"),
    "AFS": "afs.txt",
    "QA": "qa.tsv",
    "PARALLEL": "parallel.tsv",
    "SMD": "parallel.smd.tsv",
    "TRANSLATIONS": "translations.tsv",
    "STSB_NLI": "stsb-nli.tsv",
    "GLOVE": "words.txt",
}
Triplet = tuple[str, str, str]
Columns = Mapping[str, Iterable[object]]


def tiny_recipe(path: Path, folder: Path, data: Path | None, changes: Sequence[str] = ()) -> Recipe:
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
    read = read_recipe(path, changes, variables)
    plans = {name: tiny_plan(plan, models, values["SENTLOOM_DATA"]) for name, plan in read.plans.items()}
    return replace(read, plans=plans)


def tiny_plan(plan: Plan, models: dict[str, str], sets: str) -> Plan:
    """The same plan: small models for those of the hub, few steps, one seed, sets of a few rows, linear classifiers."""
    deep = deepest(plan) > MODELS["bert"][1]

    def small(name: str) -> str:
        """Also for a checkpoint that is here; the values of variables are small already."""
        whole = is_model(name) if Path(name).exists() else hub_name(name)
        return models[stand_in(name, deep)] if whole and name not in models.values() else name

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
    return options.model_copy(update=fewer | {key: value for key, value in LOOSE.items() if key in names})


def tiny_views(options: BaseModel, masked: str) -> BaseModel:
    """Views by the embedded translator, or by a small masked language model, also if WordNet is not installed."""
    if isinstance(options, BackTranslation):
        return BackTranslation()
    if isinstance(options, MaskFill) or (isinstance(options, Synonyms) and not is_installed()):
        return MaskFill(model=masked, share=options.share, seed=options.seed)
    return options


def write_tiny_models(folder: Path, texts: Path) -> dict[str, str]:
    """Write models of random weights unless they are there; returns their folders by name."""
    for name, (family, layers, width) in MODELS.items():
        if not (folder / name).is_dir():
            lines = texts.read_text("utf-8").splitlines()
            build_model(folder / name, family, lines, size=Size(vocabulary=400, layers=layers, width=width))
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


def data_folder(data: Path | None) -> str:
    """The name of the folder for tiny data, another one for every data folder that it comes from."""
    return f"data-{hashlib.sha256(str(data.resolve()).encode()).hexdigest()[:8]}" if data else "data"


def write_tiny_data(folder: Path, data: Path | None) -> dict[str, str]:
    """Write the files unless they are there; returns the value of every variable that a table may have."""
    if not folder.is_dir():
        with new_folder(folder) as part:
            _write_all(part, data)
    values = {name: str(folder / file) for name, file in TRAINING.items()}
    return values | {"SENTLOOM_DATA": str(folder / "data")}


def _write_all(folder: Path, data: Path | None) -> None:
    triplets = _triplets(data)
    trained = triplets[:TRAINED]
    _write_training(folder, trained)
    for name, columns in (_sets(triplets[TRAINED:]) | {"sts/STSB.train": _scored(trained)}).items():
        path = folder / "data" / f"{name}{SUFFIXES[0]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_shortened(data, name) or _table(columns), "utf-8")


def _triplets(data: Path | None) -> list[Triplet]:
    shipped = Path(str(files("sentloom"))) / "general" / "triplets.tsv"
    own = data / "nli" / "triplets.en.tsv" if data else shipped
    lines = (own if own.is_file() else shipped).read_text("utf-8").splitlines()[1 : TRAINED + SCORED + 1]
    return [(cells[0], cells[1], cells[2]) for cells in (line.split("\t") for line in lines)]


def _shortened(data: Path | None, name: str) -> str | None:
    """Evenly spaced rows of a set that the data folder has."""
    for suffix in SUFFIXES if data else ():
        path = data / f"{name}{suffix}"  # type: ignore[operator]
        if path.is_file():
            content = path.read_bytes()
            head, *rows = (gzip.decompress(content) if suffix.endswith(".gz") else content).decode().splitlines()
            return "\n".join([head, *rows[:: max(1, len(rows) // ROWS)][:ROWS]]) + "\n"
    return None


def _write_training(folder: Path, triplets: Sequence[Triplet]) -> None:
    anchors, positives, negatives = zip(*triplets, strict=True)
    nli = _nli(triplets)
    pairs = _table({"anchor": anchors, "positive": positives})
    translations = _table({"source": anchors, "target": map(_reversed, anchors)})
    raw, others = ("\n".join(lines) + "\n" for lines in ((*anchors, *negatives), positives))
    content = {
        **dict.fromkeys(("NLI", "NLI_ZH", "STSB_NLI"), _table(nli)),
        "RAW": raw,
        **dict.fromkeys(("BOOKS", "ASKUBUNTU", "AFS"), others),
        "QA": pairs,
        **dict.fromkeys(("PARALLEL", "SMD", "TRANSLATIONS"), translations),
        "GLOVE": "".join(f"{word} {at % 7} {at % 5} {at % 3} 1\n" for at, word in enumerate(_words(triplets))),
    }
    for name, text in content.items():
        (folder / TRAINING[name]).write_text(text, "utf-8")


def _nli(triplets: Sequence[Triplet]) -> Columns:
    """Premise, hypothesis and label: what a triplet entails and contradicts, and an unrelated sentence."""
    others = [*triplets[1:], triplets[0]]
    rows = [
        row
        for (anchor, positive, negative), other in zip(triplets, others, strict=True)
        for row in (
            (anchor, positive, "entailment"),
            (anchor, negative, "contradiction"),
            (anchor, other[0], "neutral"),
        )
    ]
    return dict(zip(("premise", "hypothesis", "label"), zip(*rows, strict=True), strict=True))


def _words(triplets: Sequence[Triplet]) -> list[str]:
    return sorted({word.strip(".,?!") for triplet in triplets for text in triplet for word in text.split()} - {""})


def _reversed(text: str) -> str:
    """A substitute for a translation: the words from the last to the first."""
    return " ".join(reversed(text.split()))


def _sets(triplets: Sequence[Triplet]) -> dict[str, Columns]:
    """The columns of each set, by the name of its file."""
    scored = [*STS_PARTS.values(), *multilingual.PARTS.values(), domain.BIOSSES]
    sets: dict[str, Columns] = {
        part.files[0]: {"subset": cycle("ab"), **_scored(triplets)} for part in scored if "tatoeba" not in part.files[0]
    }
    for editions in (*TRANSFER_SETS.values(), *SENTGLUE_SETS.values()):
        sets |= {part.files[0]: _probed(editions[0], part, triplets) for part in editions[0].parts}
    labelled = _labelled(triplets)
    sets |= {part.files[0]: labelled for part in (domain.ASKUBUNTU, domain.TWITTER_URL, domain.PIT)}
    sets[AFS_PART.files[0]] = {"topic": cycle(AFS_TOPICS), **_scored(triplets)}
    for forum in domain.FORUMS:
        sets |= _forum(forum, triplets[:5])
    return sets


def _scored(triplets: Sequence[Triplet]) -> Columns:
    rows = [row for a, p, n in triplets for row in ((5.0, a, p), (1.0, a, n))][:ROWS]
    spread = [(score - at % 7 / 10, *texts) for at, (score, *texts) in enumerate(rows)]
    return dict(zip(("score", "sentence1", "sentence2"), zip(*spread, strict=True), strict=True))


def _labelled(triplets: Sequence[Triplet]) -> Columns:
    rows = [row for a, p, n in triplets for row in ((1, a, p), (0, a, n))][:ROWS]
    return dict(zip(("label", "sentence1", "sentence2"), zip(*rows, strict=True), strict=True))


def _probed(edition: ProbedSet, part: SetPart, triplets: Sequence[Triplet]) -> Columns:
    """Sentences, or pairs of them, with the labels of the set in turn."""
    if edition.limits is not None:
        return _scored(triplets)
    known = next((source.labels for source in (part, *edition.parts) if source.labels), None)
    labels = list(islice(cycle(known or ("0", "1")), ROWS))
    first, second, _ = zip(*islice(cycle(triplets), ROWS), strict=True)
    if edition.shape is Shape.CLASSIFICATION:
        return {"label": labels, "text": first}
    names = ("premise", "hypothesis") if edition.shape is Shape.NLI else ("sentence1", "sentence2")
    return {"label": labels, **dict(zip(names, (first, second), strict=True))}


def _forum(name: str, triplets: Sequence[Triplet]) -> dict[str, Columns]:
    """A forum of CQADupStack: the anchors ask for their positives."""
    queries, documents = [f"q{at}" for at in range(len(triplets))], [f"d{at}" for at in range(len(triplets))]
    place = f"domain/CQADupStack/{name}"
    return {
        f"{place}.queries": {"id": queries, "text": [triplet[0] for triplet in triplets]},
        f"{place}.documents": {"id": documents, "text": [triplet[1] for triplet in triplets]},
        f"{place}.relevant": {"query": queries, "document": documents},
    }


def _table(columns: Columns) -> str:
    rows = zip(*columns.values(), strict=False)  # a cycle has no end
    return "\n".join("\t".join(map(str, row)) for row in [tuple(columns), *rows]) + "\n"
