"""What a plan would do, and how long it may take, before anything is trained."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa
from accelerate import Accelerator

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.mixing import make_batches
from sentloom.data.shapes import ARROW_TYPES, COLUMNS, Shape
from sentloom.encoder import Encoder
from sentloom.methods import Learner
from sentloom.pipeline.evaluation_sets import EvaluationSet, find_evaluation_set
from sentloom.pipeline.makers import SynthesizeOptions
from sentloom.pipeline.making import learner, text_model
from sentloom.pipeline.plan import Making, Plan, Stage
from sentloom.pipeline.poolings import pooling_changes
from sentloom.pipeline.references import PAIRS, PREFIX, named_stage
from sentloom.pipeline.runner import build_method, prompts_of, taught
from sentloom.pipeline.stage_data import (
    clean_data,
    fitting,
    making_material,
    refuse_leaks,
    refuse_useless_views,
    texts_of,
)
from sentloom.training.gradients import add_gradients
from sentloom.training.optimizers import build_optimizer
from sentloom.views.pairs import makers_for
from sentloom.views.settings import BackTranslation, MaskFill, Synonyms

TIMED = 3  # steps that are run to know the rate
ONCE = "made once for all seeds"
STANDS = "every sentence stands for one row of the data that will be made; fewer may be kept"


@dataclass(frozen=True)
class Forecast:
    """One stage under one seed; without steps where nothing learns.

    Time is measured on a few steps here and now; scoring is not in it.
    """

    stage: str
    method: str
    rows: int
    shape: Shape
    views: int  # sentences that views will be made of, if they are not at hand
    batch: int
    steps: int
    seconds: float
    leaked: int
    note: str = ""


def forecast(plan: Plan, folder: Path, accelerator: Accelerator) -> list[Forecast]:
    """Read all data, look for leaks, build every method, and time some of its steps. Nothing is written or judged."""
    names = [(name, plan.evaluate.data) for name in plan.evaluate.sets] if plan.evaluate else []
    names += [(plan.select.on, plan.select.data)] if plan.select else []
    evaluation_sets = [find_evaluation_set(*name) for name in names]
    found, stand_ins = _making(plan, evaluation_sets, accelerator)
    if plan.base is None:
        return found
    prompts = prompts_of(plan)
    Encoder.load(plan.base, pooling=plan.pooling, max_length=plan.max_length, prompts=prompts)
    changes = {change.stage: change.in_words for change in pooling_changes(plan)}
    with TemporaryDirectory() as scratch:
        source = plan.base
        for number, stage in enumerate(plan.stages):
            data = clean_data(stage, evaluation_sets, stand_ins.__getitem__)
            dear = isinstance(stage.views, BackTranslation | Synonyms | MaskFill)
            like = _standing_for_views(stage, data) if dear else fitting(stage, data, folder)
            leaked = refuse_leaks(stage, like, evaluation_sets)
            start = taught(stage, like, source, Path(scratch) / f"{number}-start")
            method = build_method(stage, like, start, plan.seeds[0], prompts)
            ahead = _stage(stage, method, like, leaked, plan.seeds[0], accelerator)
            notes = filter(None, (ahead.note, changes.get(stage.name)))
            found.append(replace(ahead, note="; ".join(notes)))
            source = str(Path(scratch) / str(number))  # the next stage starts from what this one leaves
            method.finished().to("cpu").save(source)
    return found


def _making(
    plan: Plan, evaluation_sets: Sequence[EvaluationSet], accelerator: Accelerator
) -> tuple[list[Forecast], dict[str, Dataset]]:
    """The making stages, and what stands for the data that they will make."""
    found: list[Forecast] = []
    stand_ins: dict[str, Dataset] = {}
    for stage in plan.making:
        data, leaked = making_material(stage, evaluation_sets, stand_ins.__getitem__)
        model = _first_model(stage, plan)
        if isinstance(stage.options, SynthesizeOptions):
            if model == stage.model:
                text_model(stage, model)  # is it there?
            rows = min(stage.options.rows or len(data), len(data))
            stand_ins |= {f"{PREFIX}{stage.name}": _standing_for_synthetic(data, rows, Shape.TRIPLETS)}
            stand_ins |= {f"{PREFIX}{stage.name}{PAIRS}": _standing_for_synthetic(data, rows, Shape.PAIRS)}
            found.append(Forecast(stage.name, stage.method, rows, data.shape, 0, 0, 0, 0.0, leaked, ONCE))
        else:
            method, learned = learner(stage, data, model)
            found.append(_stage(stage, method, learned, leaked, stage.seed, accelerator))
    return found, stand_ins


def _first_model(stage: Making, plan: Plan) -> str:
    """The model that a chain of stages begins with: of the same size as what they will make of it."""
    makers = {one.name: one for one in plan.making}
    while (name := named_stage(stage.model)) is not None:
        stage = makers[name]
    return stage.model


def _standing_for_synthetic(texts: Dataset, rows: int, shape: Shape) -> Dataset:
    """Nothing is written for a look ahead: each sentence stands for what may be kept of it."""
    table = texts.table.slice(0, rows)
    columns = {name: table.column("text") for name in COLUMNS[shape]}
    if shape is Shape.TRIPLETS:
        lists = [
            pa.ListArray.from_arrays(pa.array(range(len(one) + 1), pa.int32()), one) for one in columns["anchor"].chunks
        ]
        columns["negatives"] = pa.chunked_array(lists, ARROW_TYPES["negatives"])
    made = pa.table({**columns, FILE: table.column(FILE), LINE: table.column(LINE)})
    return replace(texts.derive(made, f"stands for {shape}", shape), used={}, skipped={})


def _standing_for_views(stage: Stage, data: Dataset) -> Dataset:
    """Making views may take an hour: each sentence stands for its own. Their makers are looked for all the same."""
    refuse_useless_views(stage)
    assert isinstance(stage.views, BackTranslation | Synonyms | MaskFill)
    makers_for(stage.views)
    texts = texts_of(data)
    names = [*COLUMNS[Shape.PAIRS], FILE, LINE]
    table = texts.table.select(["text", "text", FILE, LINE]).rename_columns(names)
    return texts.derive(table, "beside itself", Shape.PAIRS)


def _stage(
    stage: Stage | Making, method: Learner, data: Dataset, leaked: int, seed: int, accelerator: Accelerator
) -> Forecast:
    """Time some steps; the moved weights are of no use but to start the next stage from."""
    settings = stage.settings
    assert settings is not None
    method.to(accelerator.device).train()
    optimizer = build_optimizer(method, settings)
    batches = make_batches(data, settings.batch, seed, settings.mix)
    took = []
    for step in range(TIMED):
        start = time.perf_counter()
        for part in range(settings.accumulate):
            batch = batches.batch(step * settings.accumulate + part)
            add_gradients(method, batch, accelerator, settings.chunk)
        optimizer.step()
        took.append(time.perf_counter() - start)
    steps = settings.total_steps(batches.an_epoch)
    return Forecast(
        stage=stage.name,
        method=stage.method,
        rows=len(data),
        shape=data.shape,
        views=len(data) if isinstance(stage, Stage) and stage.views else 0,
        batch=settings.batch * settings.accumulate,
        steps=steps,
        seconds=steps * median(took),
        leaked=leaked,
        note=ONCE if isinstance(stage, Making) else STANDS if any(map(named_stage, stage.data)) else "",
    )
