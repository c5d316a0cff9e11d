"""Run a plan: every stage in order, for every seed; then score what came out, beside the base.

    DIR/stages/NAME-KEY/   the artifact of a stage (see `artifacts.py`), with its journal log.jsonl and snapshots/ if it
                           trained; checkpoints/ only while it runs
    DIR/scores/            scores by the model's fingerprint and the set's hash
    DIR/trunks/NAME-KEY/   what trainings of different lengths have in common, if their schedule allows it
    DIR/views/             views and translations by maker and text
    DIR/vectors/           a frozen encoder's vectors of the data, by both

A finished artifact is reused under the same key. A stage that does not depend on the seed has one key for all seeds.
"""

import math
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.tracking import get_available_trackers

from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.encoder import Encoder
from sentloom.encoder.device import Precision, chosen, device_for
from sentloom.encoder.golden import write_golden
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.locate import refuse_no_model
from sentloom.encoder.saving import write_model, write_system
from sentloom.encoder.system import VECTORS_ALONE, System
from sentloom.engine.artifacts import MODEL, Artifact, named_part, named_stage
from sentloom.engine.evaluation_sets import EvaluationSet, find_evaluation_set
from sentloom.engine.needs import is_in, pooling_changes, refuse_missing
from sentloom.engine.plan import Plan
from sentloom.engine.stages import BASE, PREVIOUS, Context, Inputs, Stage
from sentloom.engine.stages.stage import content_of
from sentloom.engine.stages.train import encoder_itself
from sentloom.errors import MissingPart
from sentloom.evaluation.bench import Model, cached_scores, score_tasks
from sentloom.evaluation.models import encoder_of, named_model, open_model
from sentloom.evaluation.task import NOT_COMPARABLE
from sentloom.files import new_folder, read_result, remove, write_result
from sentloom.progress import deadline
from sentloom.training.gradients import from_main, keep_freed_memory, own_share
from sentloom.training.loop import SNAPSHOTS

STAGES = "stages"  # the folder of their artifacts


@dataclass(frozen=True)
class PlanResult:
    """One plan under one seed: the model's folder (None: no encoder was produced), and scores by set."""

    plan: str
    seed: int
    model: Path | None
    base: str  # the base as it is: its name and pooling
    before: dict[str, float]  # its scores
    start: str  # what the first training stage got: the same, or with another pooling
    at_start: dict[str, float]
    after: dict[str, float]
    stages: tuple[dict[str, Any], ...]  # the record of each stage, with its folder, and whether it runs `once`
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what must be known about a set or a mean
    not_comparable: tuple[str, ...] = ()  # sets and means whose scores are not those that papers print

    @property
    def transductive(self) -> bool:
        """Whether sentences that are scored on were trained on."""
        return any(stage["leaked"] for stage in self.stages)

    @property
    def seconds(self) -> float:
        """The time that all stages took, whenever they ran."""
        return float(sum(stage["seconds"] for stage in self.stages))


def prepare(
    plans: Sequence[Plan],
    folder: Path,
    accelerator: Accelerator,
    log: Callable[[str], None],
    limits: Mapping[str, float] | None = None,
    files: dict[str, Dataset] | None = None,
) -> "list[Runner]":
    """Find the models of all plans and read their data: a fault in the last plan shows before the first trains.

    `limits` are the seconds that stages may take. A training that needs more decays early (`training.loop.Trunk`).
    `files` are those that were opened before, for plans that read the same ones.
    """
    files = {} if files is None else files
    refuse_missing(plans, made_in=folder)
    find_models(plans, folder)
    runners = [Runner(plan, folder, accelerator, log, limits, files) for plan in plans]
    for runner in runners:
        runner.look()
    return runners


def find_models(plans: Sequence[Plan], folder: Path) -> None:
    """Load every model that a plan names, except those in the folder itself, where an earlier plan may put them."""
    for plan in plans:
        if plan.base and (name := encoder_of(plan.base)) and not is_in(folder, name):
            encoder_itself(name, start_pooling(plan, name)).fingerprint()
    models = [pair for plan in plans for stage in plan.stages for pair in stage.other_models()]
    for key, name in dict.fromkeys(models):
        if not is_in(folder, name):
            content_of(key, name)
    named = {(name, stage.method): stage for plan in plans for stage in plan.stages for name in stage.models()}
    for (name, _), stage in named.items():
        if name not in (PREVIOUS, BASE) and named_stage(name) is None and not is_in(folder, name):
            stage.fingerprint(name, None)


def start_pooling(plan: Plan, base: str) -> str | None:
    """The pooling that a plan gives its base; None leaves the base its own."""
    return plan.training[0].start_pooling(base) if plan.training else plan.pooling


def start_encoder(plan: Plan) -> Encoder:
    """The encoder that the first training stage gets."""
    assert plan.base is not None
    if plan.training:
        return plan.training[0].shared(plan.base, plan.prompts)
    return shared_encoder(plan.base, pooling=plan.pooling, max_length=plan.max_length, prompts=plan.prompts)


class Runner:
    """Runs one plan; what all its seeds share is computed when it is first needed."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        accelerator: Accelerator,
        log: Callable[[str], None],
        limits: Mapping[str, float] | None = None,
        files: dict[str, Dataset] | None = None,
    ) -> None:
        self.plan, self.folder, self.accelerator, self.log = plan, folder, accelerator, log
        self.limits, self.files = limits or {}, {} if files is None else files
        self.artifacts: dict[str, Artifact] = {}  # of the stages that have run, by name; those of the last seed
        # By stage and the fingerprints of its sources.
        self._read: dict[tuple[str, ...], tuple[Dataset | None, int]] = {}
        self._prints: dict[tuple[str, str], str] = {}  # by stage and model
        self._done: dict[str, Artifact] = {}  # by key

    @cached_property
    def evaluation_sets(self) -> list[EvaluationSet]:
        """The sets that results are scored on."""
        evaluate = self.plan.evaluate
        if evaluate is None:
            return []
        return [
            find_evaluation_set(name, evaluate.data, fast=evaluate.fast, hidden=evaluate.hidden)
            for name in evaluate.sets
        ]

    @cached_property
    def selecting(self) -> EvaluationSet | None:
        """The set that the best step is chosen on."""
        select = self.plan.select
        return find_evaluation_set(select.on, select.data, fast=True) if select else None

    @property
    def evaluated(self) -> list[Dataset]:
        """The sentences of all sets: no stage may train on them unless it says so."""
        return [scored.data for scored in (*self.evaluation_sets, *([self.selecting] if self.selecting else []))]

    def say(self, text: str) -> None:
        """Log a line about this plan."""
        self.log(f"{self.plan.name}: {text}")

    def say_of(self, stage: Stage, label: str, text: str) -> None:
        """Log a line about a stage of this plan; if both have the same name, it is given once."""
        log = self.log if stage.name == self.plan.name else self.say
        log(f"{label}: {text}")

    def look(self) -> None:
        """Read all data that is there before anything runs."""
        for stage in self.plan.stages:
            if not any(map(named_stage, stage.sources)):
                self.rows(stage)
        for stage in self.plan.stages:
            stage.check()
        if self._is_encoder and not is_in(self.folder, self.base):
            list(pooling_changes(self.plan))  # refuses what no recipe states

    # Inputs

    def rows(self, stage: Stage) -> tuple[Dataset | None, int]:
        """The rows of a stage, if it takes any, and how many sentences of the evaluation sets are among them."""
        made_by = [name for source in stage.sources if (name := named_stage(source))]
        known = (stage.name, *(self.artifacts[name].fingerprint for name in made_by))
        if known not in self._read:
            with self.accelerator.main_process_first():
                data, leaked = stage.read(self.evaluated, self._open)
            self._check(stage, data)
            self._read[known] = data, leaked
        return self._read[known]

    def _open(self, source: str) -> Dataset:
        """The rows of a file, which is read once, or those that `stage:NAME` or `stage:NAME/PART` refers to."""
        if made_by := named_stage(source):
            return self.artifacts[made_by].rows(named_part(source))
        if source not in self.files:
            self.files[source] = open_data(source)
        return self.files[source]

    def _check(self, stage: Stage, data: Dataset | None) -> None:
        """Check that there are batches before the first step, and log what was left out."""
        if data is None:
            return
        rows = stage.trained_rows(data)
        if stage.settings is not None:
            batches = stage.settings.batches(rows, self.plan.seeds[0])
            own_share(batches.batch(0), 0, self.accelerator.num_processes)
        left_out = ", ".join(f"{count:,} {what}" for what, count in rows.skipped.items() if count)
        if left_out:
            self.say_of(stage, stage.name, left_out)

    def inputs(self, stage: Stage, encoder: Artifact | None) -> Inputs:
        """What a stage takes; `encoder` is the one of the stage before, None the base."""
        models = [self._model(stage, name, encoder) for name in stage.models()]
        return Inputs(tuple(models), *self.rows(stage))

    def _model(self, stage: Stage, name: str, encoder: Artifact | None) -> Artifact:
        if name == PREVIOUS and encoder is not None:
            return encoder
        if made_by := named_stage(name):
            return self.artifacts[made_by]
        model = self.base if name in (PREVIOUS, BASE) else name
        if (stage.name, model) not in self._prints:
            self._prints[stage.name, model] = stage.fingerprint(model, self.plan.prompts)
        return Artifact(stage.MODEL_KIND or "encoder", model, self._prints[stage.name, model])

    # Stages

    def run(self) -> list[PlanResult]:
        """Under every seed; under the first alone if neither a stage nor a set depends on it."""
        once = self.plan.once
        self._walk(self.plan.seeds[0], [stage for stage in self.plan.stages if stage.name in once])
        for stage in self.plan.stages:
            if once.issuperset(stage.references()):
                self.rows(stage)  # refuses data that does not fit before the first step
        if self._is_encoder:
            for change in pooling_changes(self.plan):
                self.say(str(change))
        tuned = any(scored.has_seed for scored in self.evaluation_sets)
        seeded = tuned or len(once) < len(self.plan.stages)
        return [self.run_seed(seed) for seed in (self.plan.seeds if seeded else self.plan.seeds[:1])]

    def run_seed(self, seed: int) -> PlanResult:
        """All stages, then the scores."""
        encoder = self._walk(seed, self.plan.stages)
        records = tuple(self._record(stage) for stage in self.plan.stages)
        model = Path(encoder.source) if encoder else None
        if self.plan.base is None:
            return PlanResult(self.plan.name, seed, model, "", {}, "", {}, {}, records)
        base, before = self._untouched
        at_start = self._scores(self.base_fingerprint, self._base, seed)
        after = self._scores(encoder.fingerprint, lambda: shared_encoder(str(model)), seed) if encoder else at_start
        scores = (base, before, self._start, at_start, after)
        return PlanResult(self.plan.name, seed, model, *scores, records, self._notes, self._not_comparable)

    def _walk(self, seed: int, stages: Iterable[Stage]) -> Artifact | None:
        """Run stages in order; returns the last encoder."""
        encoder = None
        for stage in stages:
            artifact = self.artifact(stage, self.inputs(stage, encoder), seed)
            self.artifacts[stage.name] = artifact
            encoder = artifact if artifact.kind == "encoder" else encoder
        return encoder

    def artifact(self, stage: Stage, inputs: Inputs, seed: int) -> Artifact:
        """What a stage produces: a finished artifact under the same key, or the stage runs."""
        label = f"{stage.name}, seed {seed}" if stage.SEEDED else stage.name
        context = self.context(seed, lambda text: self.say_of(stage, label, text))
        key = stage.key(inputs, context)
        if key not in self._done:
            place = self.folder / STAGES / f"{stage.name}-{key}"
            if stage.TOGETHER:
                record = self._produced(stage, inputs, key, place, context)
            else:
                with self.accelerator.main_process_first():  # the others find it finished
                    record = self._produced(stage, inputs, key, place, context)
            source = place if stage.PRODUCES == "dataset" else place / MODEL
            fingerprint = record.get("fingerprint", key)
            self._done[key] = Artifact(
                stage.PRODUCES, str(source), fingerprint, record, lambda part: stage.open(place, record, part)
            )
        return self._done[key]

    def _produced(self, stage: Stage, inputs: Inputs, key: str, place: Path, context: Context) -> dict[str, Any]:
        """The record of a stage's artifact."""
        if finished := read_result(place, self.say):
            context.log(f"done before, reused from {place}")
            if lacking := stage.reused(place):
                context.log(lacking)
            if self.accelerator.is_main_process:
                _tidy(place)
            return {**finished, "leaked": inputs.leaked}  # of today's sets
        limit = math.inf if stage.TOGETHER else context.limits.get(stage.name, math.inf)
        with deadline(limit) if limit < math.inf else nullcontext():
            facts = stage.run(inputs, place, context)
        record = {**_about(stage, inputs, key), **facts}
        if stage.TOGETHER:
            self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            write_result(place, record, *stage.OUTPUTS)
            _tidy(place)
            context.log(stage.describe(record))
        return from_main(self.accelerator, record) if stage.TOGETHER else record

    def context(self, seed: int, log: Callable[[str], None] = lambda text: None) -> Context:
        """What all stages share under a seed."""
        plan = self.plan
        select, selecting, trackers = plan.select, self.selecting, plan.trackers
        return Context(self.folder, self.accelerator, log, seed, plan.prompts, select, selecting, trackers, self.limits)

    def _record(self, stage: Stage) -> dict[str, Any]:
        """The record of a stage's artifact, its folder relative to DIR."""
        record = self.artifacts[stage.name].record
        place = f"stages/{stage.name}-{record['key']}"
        once = stage.name in self.plan.once
        return {**record, "place": place, "once": once, "result": stage.describe(record)}

    # The base, and scores

    @property
    def base(self) -> str:
        """The base's name."""
        assert self.plan.base is not None, "a plan without an encoder has none"
        return self.plan.base

    @property
    def _is_encoder(self) -> bool:
        """Whether there is a base, and it is no baseline."""
        return self.plan.base is not None and named_model(self.plan.base) is None

    @cached_property
    def base_fingerprint(self) -> str:
        """The fingerprint of the encoder that the first training stage gets; without one, of the base."""
        return self._base().fingerprint()

    @cached_property
    def _untouched(self) -> tuple[str, dict[str, float]]:
        """The base as it is: its name and pooling, and its scores."""
        if not self._is_encoder:
            return self.base, self._scores(self.base_fingerprint, self._base, self.plan.seeds[0])
        encoder = encoder_itself(self.base, start_pooling(self.plan, self.base))
        scores = self._scores(encoder.fingerprint(), lambda: encoder, self.plan.seeds[0])
        return f"{self.base}, {encoder.pooling}", scores

    @cached_property
    def _start(self) -> str:
        """The encoder that the first training stage gets: the base, with another pooling, length or prompt if any."""
        if not self._is_encoder:
            return self.base
        start = start_encoder(self.plan)
        whole = encoder_itself(self.base, str(start.pooling))
        cut = f", {start.tokens.max_length} tokens" if start.tokens.max_length != whole.tokens.max_length else ""
        prompt = self.plan.prompt
        prompted = f', prompt "{prompt.prefix}{{}}{prompt.suffix}"' if prompt else ""
        return f"{self.base}, {start.pooling}{cut}{prompted}"

    def _base(self) -> Model:
        return start_encoder(self.plan) if self._is_encoder else self._baseline

    @cached_property
    def _baseline(self) -> Model:
        """Opened once: some are fitted on text."""
        return open_model(self.base, self.plan.pooling)

    def _scores(self, fingerprint: str, load: Callable[[], Model], seed: int) -> dict[str, float]:
        """Scores by set; cached scores are reused."""
        scores: dict[str, float] = {}
        load_once = cache(load)
        for scored in [scored.under(seed) for scored in self.evaluation_sets]:
            score = self._score(scored, fingerprint, load_once) if self.accelerator.is_main_process else None
            scores[scored.name] = from_main(self.accelerator, score)
        means = {name: mean(scores[part] for part in self._counted(sets)) for name, sets in self._means.items()}
        return scores | means

    @property
    def _means(self) -> dict[str, tuple[str, ...]]:
        """The sets of each mean."""
        evaluate = self.plan.evaluate
        if evaluate is None:
            return {}
        return evaluate.means | ({"mean": tuple(dict.fromkeys(evaluate.sets))} if evaluate.mean else {})

    def _counted(self, sets: Sequence[str]) -> list[str]:
        """The sets that a mean is over: those that papers score on, if there are any."""
        return [name for name in sets if name not in self._unlike] or list(sets)

    @property
    def _unlike(self) -> set[str]:
        """The sets whose scores are not those that papers print."""
        return {scored.name for scored in self.evaluation_sets if not scored.task.comparable}

    @property
    def _not_comparable(self) -> tuple[str, ...]:
        """These sets, and the means that one of them belongs to."""
        return (*sorted(self._unlike), *(name for name, sets in self._means.items() if self._unlike.intersection(sets)))

    @property
    def _notes(self) -> dict[str, tuple[str, ...]]:
        """What must be known about the sets and their means."""
        notes = {scored.name: scored.task.notes for scored in self.evaluation_sets if scored.task.notes}
        for name, sets in self._means.items():
            if unlike := [part for part in sets if part in self._unlike]:
                how = "without" if self._counted(sets) != list(sets) else "includes"
                notes[name] = (f"{how} {', '.join(unlike)}: {NOT_COMPARABLE} published scores",)
        return notes

    def _score(self, scored: EvaluationSet, fingerprint: str, load: Callable[[], Model]) -> float:
        folder, task = self.folder / "scores", scored.task
        return scored.main(cached_scores(folder, fingerprint, task, lambda: score_tasks(load(), [task])[0]))


def _about(stage: Stage, inputs: Inputs, key: str) -> dict[str, Any]:
    """What every record has: the stage, its key, and what went in."""
    rows = inputs.data and stage.trained_rows(inputs.data)
    data = rows and {"rows": len(rows), "sha256": rows.sha256, "skipped": dict(rows.skipped)}
    return {
        "stage": stage.name,
        "method": stage.method,
        "produces": stage.PRODUCES,
        "key": key,
        "input": inputs.models[0].fingerprint if inputs.models else None,
        "data": data,
        "leaked": inputs.leaked,
    }


def _tidy(place: Path) -> None:
    """Remove what a finished stage no longer needs, and what a kill left half-written."""
    for path in [place / "checkpoints", *place.glob(".*"), *(place / SNAPSHOTS).glob(".*")]:
        remove(path)


def copy_model(model: Path, target: Path, add: Callable[[Path], None] = lambda folder: None) -> None:
    """Copy a stage's model to the user's output folder; `add` puts more into it before it gets its name."""
    refuse_no_model(target)
    with new_folder(target) as part:
        shutil.copytree(model, part, dirs_exist_ok=True)
        add(part)


def copy_encoder(
    source: Path | Encoder,
    target: Path,
    card: Callable[[Encoder], str] | None = None,
    system: System = VECTORS_ALONE,
    more: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Put an encoder into the user's output folder: a stage's as it is, another one saved.

    It gets golden vectors, the system that its search is and, if it has one, its model card; `more` adds to that.
    """
    encoder = Encoder.load(source) if isinstance(source, Path) else source

    def add(folder: Path) -> None:
        write_golden(encoder, folder)
        write_system(system, folder)
        if card:
            (folder / "README.md").write_text(card(encoder), "utf-8")
        more(folder)

    if isinstance(source, Path):
        copy_model(source, target, add)
        return
    refuse_no_model(target)
    with new_folder(target) as part:
        write_model(encoder, part)
        add(part)


def start_accelerator(
    trackers: tuple[str, ...], folder: Path, by_default: Callable[[torch.device], Precision] = lambda device: "fp32"
) -> Accelerator:
    """Processes as `accelerate launch` or torchrun set them, and device and precision too unless the user chose.

    `by_default` is the precision on a device if nobody chose one.
    """
    there = set(map(str, get_available_trackers()))
    missing = " ".join(name for name in trackers if name not in there)  # accelerate would silently leave them out
    if missing:
        raise MissingPart("trackers", f"{missing} is not installed", "", f"pip install {missing}")
    device, precision = chosen()
    keep_freed_memory()
    # `cpu` is always given, or accelerate does not join the processes of torchrun.
    cpu = torch.device(device).type == "cpu" if device else not torch.accelerator.is_available()
    named = precision or os.environ.get("ACCELERATE_MIXED_PRECISION") or by_default(device_for())
    mixed = "no" if named == "fp32" else named
    _forget_earlier(cpu, mixed)
    if device and ":" in device:
        torch.accelerator.set_device_index(torch.device(device).index)
    return Accelerator(cpu=cpu, mixed_precision=mixed, log_with=list(trackers) or None, project_dir=str(folder))


def _forget_earlier(cpu: bool, mixed: str) -> None:
    """Accelerate keeps one device and precision per process: drop those of an earlier call that chose others."""
    if AcceleratorState._shared_state and PartialState().num_processes == 1:
        state = AcceleratorState()
        if (state.device.type == "cpu", state.mixed_precision) != (cpu, mixed):
            AcceleratorState._reset_state(reset_partial_state=True)
