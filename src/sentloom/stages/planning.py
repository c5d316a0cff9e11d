"""What a plan would do, and how long it may take, before anything is trained."""

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from accelerate import Accelerator

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.mixing import make_batches
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.encoder import Encoder
from sentloom.methods import Method
from sentloom.recipe import Plan, Stage
from sentloom.stages.judges import judge
from sentloom.stages.material import fitting, read_data, refuse_leaks, refuse_useless_views, texts_of, without_leaks
from sentloom.stages.running import build_method, taught
from sentloom.training.gradients import add_gradients
from sentloom.training.optimizers import build_optimizer
from sentloom.views.pairs import makers_for
from sentloom.views.settings import BackTranslation, MaskFill, Synonyms

TIMED = 3  # steps that are run to know the rate


@dataclass(frozen=True)
class Forecast:
    """One stage under one seed. Time is measured on a few steps here and now; scoring is not in it."""

    stage: str
    method: str
    rows: int
    shape: Shape
    views: int  # sentences that views will be made of, if they are not at hand
    batch: int
    steps: int
    seconds: float
    leaked: int


def forecast(plan: Plan, folder: Path, accelerator: Accelerator) -> list[Forecast]:
    """Read all data, look for leaks, build every method, and time some of its steps."""
    names = [(name, plan.evaluate.data) for name in plan.evaluate.sets] if plan.evaluate else []
    names += [(plan.select.on, plan.select.data)] if plan.select else []
    judges = [judge(*name) for name in names]
    found = []
    Encoder.load(plan.base, pooling=plan.pooling, max_length=plan.max_length)
    with TemporaryDirectory() as scratch:
        source = plan.base
        for number, stage in enumerate(plan.stages):
            data = without_leaks(read_data(stage), judges) if stage.drop_leaks else read_data(stage)
            dear = isinstance(stage.views, BackTranslation | Synonyms | MaskFill)
            like = _standing_for_views(stage, data) if dear else fitting(stage, data, folder)
            leaked = refuse_leaks(stage, like, judges)
            start = taught(stage, like, source, Path(scratch) / f"{number}-start")
            method = build_method(stage, like, start, plan.seeds[0])
            found.append(_stage(plan, stage, method, like, leaked, accelerator))
            source = str(Path(scratch) / str(number))  # the next stage starts from what this one leaves
            method.finished().to("cpu").save(source)
    return found


def _standing_for_views(stage: Stage, data: Dataset) -> Dataset:
    """Making views may take an hour: each sentence stands for its own. Their makers are looked for all the same."""
    refuse_useless_views(stage)
    assert isinstance(stage.views, BackTranslation | Synonyms | MaskFill)
    makers_for(stage.views)
    texts = texts_of(data)
    names = [*COLUMNS[Shape.PAIRS], FILE, LINE]
    table = texts.table.select(["text", "text", FILE, LINE]).rename_columns(names)
    return texts.derive(table, "beside itself", Shape.PAIRS)


def _stage(plan: Plan, stage: Stage, method: Method, data: Dataset, leaked: int, accelerator: Accelerator) -> Forecast:
    """Time some steps; the moved weights are of no use but to start the next stage from."""
    method.to(accelerator.device).train()
    optimizer = build_optimizer(method, stage.settings)
    batches = make_batches(data, stage.settings.batch, plan.seeds[0], stage.settings.mix)
    took = []
    for step in range(TIMED):
        start = time.perf_counter()
        for part in range(stage.settings.accumulate):
            batch = batches.batch(step * stage.settings.accumulate + part)
            add_gradients(method, batch, accelerator, stage.settings.chunk)
        optimizer.step()
        took.append(time.perf_counter() - start)
    steps = stage.settings.total_steps(batches.an_epoch)
    return Forecast(
        stage=stage.name,
        method=stage.method,
        rows=len(data),
        shape=data.shape,
        views=len(data) if stage.views else 0,
        batch=stage.settings.batch * stage.settings.accumulate,
        steps=steps,
        seconds=steps * median(took),
        leaked=leaked,
    )
