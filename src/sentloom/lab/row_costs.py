"""What a row of a paper's table costs before it starts: checkpoints, GPU memory, disk, and hours on a named GPU.

FLOPs are counted on the architecture of each checkpoint (checkpoint_sizes.py). Rows of data that is not here come from
paper_sizes.yaml. Scoring, heads and predictors are not counted.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentloom.data.inputs import hub_name
from sentloom.data.shapes import Shape
from sentloom.encoder.locate import catalogue_entry, is_model
from sentloom.encoder.pooling import DECODER_FIRST
from sentloom.engine.artifacts import named_stage
from sentloom.engine.plan import Plan
from sentloom.engine.stages import DataStage, Retrieve, Stage, Synthesize, Train, Views
from sentloom.evaluation.models import encoder_of
from sentloom.lab.checkpoint_sizes import WEIGHT, architecture, paper_sizes, parameters, text_flops
from sentloom.lab.stages import SynthesizerStage
from sentloom.methods.vector_store import stored_bytes
from sentloom.writing.endpoint import is_endpoint
from sentloom.writing.views.settings import BackTranslation

GPU, PEAK = "A100 (80 GB), --precision bf16", 312e12  # FLOP/s
# Our assumptions: the share of the peak that training and reading reach, that of writing token by token, and the
# least time of a step.
SHARE, WRITING_SHARE, STEP_SECONDS = 0.3, 0.03, 0.05
GPU_SIZES = (16, 24, 40, 80)  # GB of common GPUs
GB = 1e9
STATE = {"adamw": 2, "adam": 2, "adafactor": 0}  # values per weight that the optimiser keeps
ACTIVATIONS = 34  # values per token, layer and dimension that the backward pass needs (Korthikanti et al., 2022)
LENGTH = 20  # tokens of a text of unknown data
WRITTEN = 15  # tokens of a sentence that a model writes
# Texts per row that go through the trained encoder, and through a frozen or averaged one.
PASSES = {
    "contrastive": (2, 0),
    "nli-classification": (2, 0),
    "cosent": (2, 0),
    "simcse": (2, 0),
    "mlm": (1, 0),
    "tsdae": (1, 0),
    "is-bert": (1, 0),
    "self-guided": (1, 1),
    "contrastive-bt": (2, 0),
    "bootstrapped": (2, 2),
    "cross-lingual": (1, 0),  # the source's vectors are computed once
    "mse-distillation": (2, 0),
}
SHAPES = {  # what a method learns from, the first that the data has
    "nli-classification": ("nli",),
    "contrastive": ("triplets", "pairs"),
    "cosent": ("scored",),
    "cross-lingual": ("parallel",),
    "mse-distillation": ("parallel",),
    "bootstrapped": ("parallel", "texts"),
    "synthesizer": ("triplets",),
}


@dataclass(frozen=True)
class StageCost:
    """A stage under one seed."""

    name: str
    rows: int
    steps: int  # 0: nothing is trained
    flops: float
    memory: float  # bytes on the GPU
    runs: int  # seeds that it runs under
    writes: bool = False

    @property
    def hours(self) -> float:
        """Under all seeds, on the named GPU."""
        seconds = self.flops / PEAK / (WRITING_SHARE if self.writes else SHARE)
        return self.runs * max(seconds, self.steps * STEP_SECONDS) / 3600


@dataclass(frozen=True)
class RowCost:
    """A row: the command that runs it alone, its checkpoints with their bytes, and its stages."""

    row: str
    command: str
    checkpoints: Mapping[str, float]
    here: frozenset[str]  # checkpoints that need no download
    disk: float
    stages: tuple[StageCost, ...]
    scored: float  # bytes of the model that is scored: of a T5, the encoder alone if no decoder state is pooled

    @property
    def memory(self) -> float:
        """The most that any stage needs on the GPU."""
        return max([stage.memory for stage in self.stages], default=self.scored)

    @property
    def hours(self) -> float:
        """All stages under all seeds."""
        return sum(stage.hours for stage in self.stages)


def row_cost(plan: Plan, table: str, row: str | None = None) -> RowCost:
    """The cost of a row of a table, or of the part of that `row` which the plan is."""
    names = list(dict.fromkeys(_models(plan)))
    sizes = {name: WEIGHT * parameters(name) for name in names}
    stages = tuple(_stage_costs(plan))
    trained = sum(isinstance(stage, Train) for stage in plan.stages)
    encoder = encoder_of(plan.base) if plan.base else None
    base = sizes.get(encoder or "", 0.0)
    # Every training leaves its encoder and, while it runs, a checkpoint with the optimiser; the last is copied.
    kept = base * (trained + bool(trained)) * len(plan.seeds) + (3 * base if trained else 0)
    downloads = sum(size for name, size in sizes.items() if not is_model(name))
    command = f"sentloom lab reproduce {table} --row {shlex.quote(row or plan.name)}"
    here = frozenset(name for name in names if is_model(name))
    kind = DECODER_FIRST if plan.pooling == DECODER_FIRST else "encoder"
    scored = WEIGHT * parameters(encoder, kind) if encoder in sizes else 0.0
    return RowCost(plan.name, command, sizes, here, downloads + kept + _vectors(plan), stages, scored)


def _models(plan: Plan) -> Iterator[str]:
    named = [encoder_of(plan.base)] if plan.base else []
    for stage in plan.stages:
        named += [*stage.models(), *stage.makers(), *(model for _, model in stage.other_models())]
    for name in named:
        if name and named_stage(name) is None and catalogue_entry(name) is None and not is_endpoint(name):
            yield name


def _stage_costs(plan: Plan) -> Iterator[StageCost]:
    made: dict[str, tuple[int, str, float]] = {}  # rows, shape and tokens that a stage gives
    for stage in plan.stages:
        rows, shape, tokens = _data(stage, plan, made)
        made[stage.name] = _given(stage, rows, shape, tokens)
        runs = 1 if stage.name in plan.once else len(plan.seeds)
        if stage.settings is None:
            flops, writes = _made_flops(stage, plan, rows, tokens), not isinstance(stage, Retrieve)
            yield StageCost(stage.name, rows, 0, flops, _largest(stage, plan), runs, writes)
        else:
            yield _training(stage, plan, rows, shape, tokens, runs)


def _data(stage: Stage, plan: Plan, made: Mapping[str, tuple[int, str, float]]) -> tuple[int, str, float]:
    """How many rows of which shape a stage takes, and the mean length of a text."""
    if not isinstance(stage, DataStage):
        return 0, "texts", LENGTH
    sources = [made.get(named_stage(source) or "") or _known(source, stage, plan) for source in stage.sources]
    folder = [plan.variables.get(source) == "SENTLOOM_DATA" for source in stage.sources]
    if any(folder):  # the parts of STS-B are counted together
        sources = sources[:1]
    rows = sum(count for count, _, _ in sources)
    tokens = sum(count * length for count, _, length in sources) / max(1, rows)
    return round(rows * stage.data_share), sources[0][1], tokens


def _known(source: str, stage: DataStage, plan: Plan) -> tuple[int, str, float]:
    """Rows, shape and tokens of a file: counted if it is here, else as paper_sizes.yaml has them."""
    facts = paper_sizes()["data"].get(plan.variables.get(source, _variable_of(source)), {"tokens": LENGTH, "rows": {}})
    if Path(source).is_file():
        data, _ = stage.model_copy(update={"data": (source,), "data_share": 1.0}).read(())
        return (len(data), str(data.shape), facts["tokens"]) if data else (0, "texts", facts["tokens"])
    wanted = SHAPES.get(stage.method, ("texts",))
    if isinstance(stage, Views) and stage.options.kind == "entailment":
        wanted = ("pairs",)
    shape = next((shape for shape in wanted if shape in facts["rows"]), next(iter(facts["rows"]), "texts"))
    return facts["rows"].get(shape, 0), shape, facts["tokens"]


def _variable_of(source: str) -> str:
    """The data that a hub name stands for in the recipes."""
    match = hub_name(source)
    names = {"sentence-transformers/all-nli": "NLI", "sentence-transformers/gooaq": "QA"}
    return names.get(match[1], "") if match else ""


def _given(stage: Stage, rows: int, shape: str, tokens: float) -> tuple[int, str, float]:
    if isinstance(stage, Synthesize):
        return rows, "triplets", (tokens + 2 * WRITTEN) / 3
    if isinstance(stage, Views | Retrieve):
        return rows, "pairs", tokens
    return rows, shape, tokens


def _training(stage: Stage, plan: Plan, rows: int, shape: str, tokens: float, runs: int) -> StageCost:
    """One training: its passes over all epochs; with `chunk`, each chunk has one forward pass more."""
    settings = stage.settings
    assert settings is not None
    writer = isinstance(stage, SynthesizerStage)
    if writer:
        learned, frozen, model = 4, 0, stage.models()[0]
    else:
        learned, frozen = PASSES.get(stage.method, (1, 0))
        learned += stage.method == "contrastive" and shape == Shape.TRIPLETS
        model = encoder_of(plan.base or "") or ""
        learned, frozen = _dual(stage, learned, frozen)
    steps = settings.total_steps(max(1, rows // settings.batch))
    seen = steps * settings.batch * settings.accumulate
    forward, both = text_flops(model, _kind(stage, plan), _length(stage, plan, tokens))
    flops = seen * (learned * (both + (forward if settings.chunk else 0)) + frozen * forward)
    if stage.method in ("cross-lingual", "mse-distillation") and (source := dict(stage.other_models()).get("source")):
        flops += rows * text_flops(source, "encoder", _length(stage, plan, tokens))[0]
    texts = (settings.chunk or settings.batch) * learned
    return StageCost(stage.name, rows, steps, flops, _memory(stage, model, _kind(stage, plan), texts * tokens), runs)


def _dual(stage: Stage, learned: int, frozen: int) -> tuple[int, int]:
    """The ablations of the cross-lingual paper train or share the source."""
    if getattr(stage.options, "source_encoder", "frozen") != "frozen":
        return learned + 1, 0
    return learned, frozen


def _kind(stage: Stage, plan: Plan) -> str:
    if isinstance(stage, SynthesizerStage):
        return "seq2seq"
    pooling = getattr(stage, "pooling", None) or plan.pooling or getattr(stage, "preset_pooling", None)
    return DECODER_FIRST if pooling == DECODER_FIRST else "encoder"


def _length(stage: Stage, plan: Plan, tokens: float) -> int:
    longest = getattr(stage, "max_length", None) or plan.max_length
    around = 11 if plan.prompt else 0  # GenSE's prompt
    return round(min(tokens + around, longest if isinstance(longest, int) else 512))


def _memory(stage: Stage, model: str, kind: str, tokens: float) -> float:
    """Weights, gradients, the optimiser's state, averaged or frozen copies, and the activations of a chunk."""
    settings = stage.settings
    assert settings is not None
    copies = 2 + STATE[settings.optimizer] + (stage.method in ("bootstrapped", "self-guided"))
    config = architecture(model).config
    layers = config.num_hidden_layers * (2 if kind == "seq2seq" else 1)
    return WEIGHT * (parameters(model, kind) * copies + tokens * layers * config.hidden_size * ACTIVATIONS)


def _made_flops(stage: Stage, plan: Plan, rows: int, tokens: float) -> float:
    """Of a stage that makes data: what its models read and write."""
    if isinstance(stage, Synthesize):
        model = next((_writer(earlier) for earlier in plan.stages if isinstance(earlier, SynthesizerStage)), None)
        return rows * 4 * text_flops(model, "seq2seq", round(tokens + 15))[0] if model else 0.0
    if isinstance(stage, Retrieve):
        return sum(5 * rows * text_flops(model, "encoder", round(2 * tokens))[0] for model in stage.models())
    beams = stage.options.beams if isinstance(stage, Views) and isinstance(stage.options, BackTranslation) else 1
    kind = "seq2seq" if isinstance(stage, Views) and isinstance(stage.options, BackTranslation) else "encoder"
    return sum(rows * beams * text_flops(maker, kind, round(tokens))[0] for maker in stage.makers())


def _writer(stage: Stage) -> str:
    return stage.models()[0]


def _largest(stage: Stage, plan: Plan) -> float:
    models = [name for name in (*stage.models(), *stage.makers()) if name in set(_models(plan))]
    return max((WEIGHT * parameters(name) for name in models), default=0.0)


def _vectors(plan: Plan) -> float:
    """Bytes of a frozen source's stored vectors."""
    return sum(
        stored_bytes(rows, architecture(source).config.hidden_size)
        for stage in plan.stages
        if isinstance(stage, Train) and (source := dict(stage.other_models()).get("source"))
        for rows in [_data(stage, plan, {})[0]]
    )


def describe(cost: RowCost) -> list[str]:
    """A row's cost in lines, the command first."""
    lines = [cost.command]
    for name, size in cost.checkpoints.items():
        origin = "here" if name in cost.here else "from the hub" if "/" in name else "not here"
        lines.append(f"  {name}: {size / GB:.2f} GB, {origin}")
    fits = next((f"fits a GPU with {size} GB" for size in GPU_SIZES if cost.memory < 0.9 * size * GB), NO_FIT)
    if cost.scored:
        lines.append(f"  vectors come from {cost.scored / WEIGHT / 1e6:,.0f} million parameters")
    lines.append(f"  about {cost.memory / GB:.1f} GB of GPU memory ({fits}), {cost.disk / GB:.1f} GB of disk")
    for stage in cost.stages:
        trained = f", {stage.steps:,} steps" if stage.steps else ""
        seeds = f" x {stage.runs} seeds" if stage.runs > 1 else ""
        work = f"{stage.flops:.1e} FLOP{seeds}, {hours(stage.hours)}"
        lines.append(f"  {stage.name}: {stage.rows:,} rows{trained}, {work}")
    return [*lines, f"  in all {hours(cost.hours)} on an {GPU}"]


NO_FIT = "fits no single GPU: nothing is sharded over several"


def hours(value: float) -> str:
    """Minutes below one hour."""
    return f"{value * 60:.0f} min" if value < 1 else f"{value:,.1f} h"


def total(costs: Sequence[RowCost]) -> str:
    """All rows together, and what the hours assume."""
    hours_of_all = hours(sum(cost.hours for cost in costs))
    return (
        f"{len(costs)} rows: {hours_of_all} on an {GPU}, if {SHARE:.0%} of its {PEAK / 1e12:.0f} TFLOP/s are reached, "
        f"{WRITING_SHARE:.0%} where text is written, and a step takes {STEP_SECONDS * 1000:.0f} ms or more. "
        "Scoring is not counted."
    )
