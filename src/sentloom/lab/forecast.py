"""What a plan would do, and how long it may take, before anything runs: a small timed sample of every stage."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from accelerate import Accelerator

from sentloom.encoder.loading import shared_encoder
from sentloom.engine.needs import pooling_changes
from sentloom.engine.plan import Plan
from sentloom.engine.runner import Runner
from sentloom.engine.stages import Forecast
from sentloom.evaluation.models import named_model


def forecast(plan: Plan, accelerator: Accelerator) -> list[Forecast]:
    """Read all data, look for leaks, and time a sample of every stage. Nothing is stored or scored."""
    changes = {}
    if plan.base is not None and named_model(plan.base) is None:
        shared_encoder(plan.base, pooling=plan.pooling, max_length=plan.max_length, prompts=plan.prompts)
        changes = {change.stage: change.note for change in pooling_changes(plan)}
    with TemporaryDirectory() as scratch:
        runner = Runner(plan, Path(scratch), accelerator, lambda text: None)
        forecasts, encoder = [], None
        for stage in plan.stages:
            inputs = runner.inputs(stage, encoder)
            ahead, artifact = stage.forecast(inputs, runner.context(plan.seeds[0]), Path(scratch))
            runner.artifacts[stage.name] = artifact
            encoder = artifact if artifact.kind == "encoder" else encoder
            notes = filter(None, (ahead.note, changes.get(stage.name)))
            forecasts.append(replace(ahead, note="; ".join(notes)))
    return forecasts
