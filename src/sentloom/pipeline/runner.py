"""Run a plan: every stage in order, for every seed; then score what came out, beside what went in.

    DIR/stages/sg-1f0c.../model/         what a stage gave: a sentence-transformers folder
                         /log.jsonl      its journal
                         /result.json    what went in, how it went
                         /snapshots/     the encoder on the way, if the recipe wants that
                         /checkpoints/   only while it runs
    DIR/stages/                          also what making stages gave: see `making`
    DIR/scores/                          scores by the model's fingerprint and the set's hash
    DIR/views/                           views by maker and text
    DIR/vectors/                         a frozen encoder's vectors of the data, by both

A stage's folder carries a hash of all that went into it. Whatever is complete is used as it is.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.tracking import get_available_trackers

from sentloom.data.dataset import Dataset
from sentloom.data.mixing import make_batches
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.vocabulary import new_vocabulary
from sentloom.errors import DamagedFile, InputError, MissingPart, ModelError
from sentloom.files import is_sealed, new_folder, read_record, read_result, remove, seal, write_record, write_result
from sentloom.methods import METHODS, Method
from sentloom.pipeline.evaluation_sets import EvaluationSet, find_evaluation_set
from sentloom.pipeline.keys import content_key, named_models, stage_key
from sentloom.pipeline.making import Workshop, learned_rows, text_model
from sentloom.pipeline.plan import Making, Plan, Stage
from sentloom.pipeline.poolings import pooling_changes, start_pooling
from sentloom.pipeline.references import named_stage
from sentloom.pipeline.stage_data import making_material, material
from sentloom.training import Selection, train
from sentloom.training.distributed import from_main
from sentloom.training.gradients import own_share
from sentloom.training.loop import SNAPSHOTS
from sentloom.training.optimizers import learning

SCORES = 1  # raised when a metric changes: kept scores are then computed anew


@dataclass(frozen=True)
class PlanResult:
    """One plan under one seed: the model's folder (None: nothing was trained), and scores by set."""

    plan: str
    seed: int
    model: Path | None
    base: str  # the base as it is: its name and pooling
    before: dict[str, float]  # its scores
    start: str  # what the first stage got: the same, or with another pooling
    at_start: dict[str, float]
    after: dict[str, float]
    stages: tuple[dict[str, Any], ...]
    made: tuple[dict[str, Any], ...] = ()  # by the making stages, the same under every seed

    @property
    def transductive(self) -> bool:
        """Whether sentences that are scored on were trained on."""
        return any(stage["leaked"] for stage in (*self.made, *self.stages))


def prepare(
    plans: Sequence[Plan], folder: Path, accelerator: Accelerator, log: Callable[[str], None]
) -> "list[Runner]":
    """Find the models of all plans, read their data, make views: a fault in the last shows before the first trains."""
    find_models(plans, folder)
    runners = [Runner(plan, folder, accelerator, log) for plan in plans]
    for runner in runners:
        runner.look()
    return runners


def find_models(plans: Sequence[Plan], folder: Path) -> None:
    """Load every model that a plan names, but for those in the folder itself, where an earlier plan may put them."""
    bases = [plan.base for plan in plans if plan.base]
    options = [model for plan in plans for stage in plan.stages for model in named_models(stage.options).values()]
    for name in dict.fromkeys([*bases, *options]):
        if not _lies_in(folder, name):
            Encoder.load(name)
    making = {(one.model, one.method): one for plan in plans for one in plan.making if not named_stage(one.model)}
    for one in making.values():
        if not _lies_in(folder, one.model):
            text_model(one, one.model)


def _lies_in(folder: Path, name: str) -> bool:
    return Path(name).expanduser().resolve().is_relative_to(folder.resolve())


@dataclass
class Runner:
    """The parts of a plan that all its seeds share, each made when first needed."""

    plan: Plan
    folder: Path
    accelerator: Accelerator
    log: Callable[[str], None]

    def __post_init__(self) -> None:
        self.workshop = Workshop(self.folder / "stages", self.accelerator, self.say)
        self._materials: dict[str, tuple[Dataset, int]] = {}  # by stage

    @cached_property
    def evaluation_sets(self) -> list[EvaluationSet]:
        """The sets that results are scored on."""
        evaluate = self.plan.evaluate
        return [find_evaluation_set(name, evaluate.data) for name in evaluate.sets] if evaluate else []

    @cached_property
    def selecting(self) -> EvaluationSet | None:
        """The set that the best step is chosen on."""
        select = self.plan.select
        return find_evaluation_set(select.on, select.data, fast=True) if select else None

    def look(self) -> None:
        """Read all data that is there before anything is made."""
        stages: list[Stage | Making] = [*self.plan.making, *self.plan.stages]
        for stage in stages:
            if not any(map(named_stage, stage.data)):
                self.material(stage)
        if self.plan.base is not None and not _lies_in(self.folder, self.plan.base):
            list(pooling_changes(self.plan))  # refuses what no recipe states

    def material(self, stage: Stage | Making) -> tuple[Dataset, int]:
        """The data of a stage, and how many sentences of the judges stand in it."""
        if stage.name not in self._materials:
            every = [*self.evaluation_sets, *([self.selecting] if self.selecting else [])]
            with self.accelerator.main_process_first():  # views are made once, and found by the others
                if isinstance(stage, Making):
                    found = making_material(stage, every, self.workshop.open)
                else:
                    found = material(stage, every, self.folder / "views", self.workshop.open)
            self._check(stage, found[0])
            self._materials[stage.name] = found
        return self._materials[stage.name]

    def _check(self, stage: Stage | Making, data: Dataset) -> None:
        """That there are batches, before the first step; and say what was left out."""
        rows = learned_rows(stage, data) if isinstance(stage, Making) else data
        if stage.settings is not None:
            batches = make_batches(rows, stage.settings.batch, self.plan.seeds[0], stage.settings.mix)
            own_share(batches.batch(0), 0, self.accelerator.num_processes)
        left_out = ", ".join(f"{count:,} {what}" for what, count in rows.skipped.items() if count)
        if left_out:
            self.say(f"{stage.name}: {left_out}")

    def say(self, text: str) -> None:
        """Tell the user something of this plan."""
        self.log(f"{self.plan.name}: {text}")

    @cached_property
    def base_fingerprint(self) -> str:
        """Of the encoder that the first stage gets; the base as it is where there is no stage."""
        return self._base().fingerprint()

    @property
    def base(self) -> str:
        """The base's name."""
        assert self.plan.base is not None, "a plan without an encoder has none"
        return self.plan.base

    @property
    def made(self) -> tuple[dict[str, Any], ...]:
        """What the making stages gave."""
        return tuple(
            {**one.record, "place": str(one.place.relative_to(self.folder))} for one in self.workshop.made.values()
        )

    def make(self) -> None:
        """Do the making stages."""
        for stage in self.plan.making:
            self.workshop.make(stage, *self.material(stage))

    def run(self) -> list[PlanResult]:
        """Under every seed; under one alone where there is no stage to differ in."""
        self.make()
        for stage in self.plan.stages:
            self.material(stage)  # what was made may not fit: before the first step
        if self.plan.base is None:
            return [PlanResult(self.plan.name, self.plan.seeds[0], None, "", {}, "", {}, {}, (), self.made)]
        for change in pooling_changes(self.plan):
            self.say(str(change))
        return [self.run_seed(seed) for seed in (self.plan.seeds if self.plan.stages else self.plan.seeds[:1])]

    def run_seed(self, seed: int) -> PlanResult:
        """All stages, then the scores."""
        source, fingerprint, records = self.base, self.base_fingerprint, []
        for stage in self.plan.stages:
            record, place = self._stage(stage, *self.material(stage), source, fingerprint, seed)
            source, fingerprint = str(place / "model"), record["fingerprint"]
            records.append(record)
        base, before = self._untouched
        start, at_start = self._start, self._scores(self.base_fingerprint, self._base)
        after = self._scores(fingerprint, lambda: Encoder.load(source)) if records else at_start
        model = Path(source) if records else None
        return PlanResult(self.plan.name, seed, model, base, before, start, at_start, after, tuple(records), self.made)

    @cached_property
    def _untouched(self) -> tuple[str, dict[str, float]]:
        """The base as it is: what it is called, and its scores."""
        encoder = Encoder.load(self.base)
        return f"{self.base}, {encoder.pooling}", self._scores(encoder.fingerprint(), lambda: encoder)

    @cached_property
    def _start(self) -> str:
        """What the first stage gets: the base, perhaps with another pooling or a prompt, or sentences cut shorter."""
        whole, start = Encoder.load(self.base), self._base()
        cut = f", {start.tokens.max_length} tokens" if start.tokens.max_length != whole.tokens.max_length else ""
        prompt = self.plan.prompt
        prompted = f', prompt "{prompt.prefix}{{}}{prompt.suffix}"' if prompt else ""
        return f"{self.base}, {start.pooling}{cut}{prompted}"

    def _base(self) -> Encoder:
        if not self.plan.stages:
            pooling, max_length = self.plan.pooling, self.plan.max_length
        else:
            first = self.plan.stages[0]
            pooling, max_length = start_pooling(first, self.base), first.max_length
        return Encoder.load(self.base, pooling=pooling, max_length=max_length, prompts=prompts_of(self.plan))

    def _stage(
        self, stage: Stage, data: Dataset, leaked: int, source: str, fingerprint: str, seed: int
    ) -> tuple[dict[str, Any], Path]:
        machine = f"{self.accelerator.mixed_precision} {self.accelerator.num_processes}"
        key = stage_key(stage, data, fingerprint, seed, self.plan.select, self.selecting, machine)
        place = self.folder / "stages" / f"{stage.name}-{key}"
        if kept := read_result(place, self.say):
            self.say(f"{stage.name}, seed {seed}: done before, kept in {place}")
            if stage.settings.snapshots and not (place / SNAPSHOTS).is_dir():
                self.say(f"{stage.name}, seed {seed}: trained without snapshots; train in another folder to have them")
            if self.accelerator.is_main_process:
                _tidy(place)
            return {**kept, "leaked": leaked}, place  # of today's sets
        record = self._train(stage, data, source, seed, place)
        if self.accelerator.is_main_process:
            about = {"stage": stage.name, "method": stage.method, "seed": seed, "key": key, "input": fingerprint}
            facts = {"rows": len(data), "sha256": data.sha256, "skipped": dict(data.skipped)}
            record = {**about, **record, "data": facts, "leaked": leaked}
            write_result(place, record, "model")
            _tidy(place)
            self.say(f"{stage.name}, seed {seed}: {in_words(record['outcome'])}")
        return from_main(self.accelerator, record), place

    def _train(self, stage: Stage, data: Dataset, source: str, seed: int, place: Path) -> dict[str, Any]:
        """Train one stage and save its encoder."""
        with self.accelerator.main_process_first():
            source = taught(stage, data, source, place / "start")
        method = build_method(stage, data, source, seed, prompts_of(self.plan))
        with self.accelerator.main_process_first():  # vectors are made once, and found by the others
            method.prepare(data, self.folder / "vectors", self.say)
        select = self.plan.select
        selection = None
        if select and self.selecting:
            score = self.selecting.score
            selection = Selection(score, select.every, select.patience, select.endurance, select.keep)
        for note in method.notes:
            self.say(f"{stage.name}, seed {seed}: {note}")
        self._start_trackers(stage, place)
        outcome = train(
            method,
            data,
            stage.settings,
            seed=seed,
            folder=place,
            accelerator=self.accelerator,
            selection=selection,
            title=f"{stage.name} seed {seed}",
            log=lambda text: self.say(f"{stage.name}, seed {seed}: {text}"),
        )
        self._end_trackers()
        encoder = method.finished().to("cpu")
        encoder.tokens.max_length = Encoder.load(source).tokens.max_length  # sentences were cut for training alone
        if self.accelerator.is_main_process:
            encoder.save(place / "model")
        plain: dict[str, Any] = json.loads(json.dumps(asdict(outcome)))  # as a later run will read it
        return {"outcome": plain, "fingerprint": encoder.fingerprint()}

    def _scores(self, fingerprint: str, load: Callable[[], Encoder]) -> dict[str, float]:
        """Scores by set; what was scored before is not scored again."""
        scores: dict[str, float] = {}
        load_once = cache(load)
        for one in self.evaluation_sets:
            score = self._score(one, fingerprint, load_once) if self.accelerator.is_main_process else None
            scores[one.name] = from_main(self.accelerator, score)
        if self.plan.evaluate and self.plan.evaluate.mean:
            scores["mean"] = mean(scores.values())
        return scores

    def _score(self, one: EvaluationSet, fingerprint: str, load: Callable[[], Encoder]) -> float:
        key = content_key(revision=SCORES, model=fingerprint, set=one.data.sha256, metric=one.metric)
        path = self.folder / "scores" / f"{key}.json"
        if path.is_file():
            try:
                return float(read_record(path, "")["score"])
            except DamagedFile:
                self.say(f"{path} is not what was written: {one.name} is scored again")
        score = one.score(load())
        write_record(path, {"set": one.name, "metric": one.metric, "model": fingerprint, "score": score})
        return score

    def _start_trackers(self, stage: Stage, place: Path) -> None:
        if self.plan.trackers:
            config = {"method": stage.method, **stage.options.model_dump(), **stage.settings.model_dump()}
            plain = {name: value if isinstance(value, int | float) else str(value) for name, value in config.items()}
            self.accelerator.init_trackers(place.name, config=plain)

    def _end_trackers(self) -> None:
        """A stage is a run of its own: what the next one logs belongs to another."""
        for tracker in self.accelerator.trackers:
            tracker.finish()
        self.accelerator.trackers = []


def _tidy(place: Path) -> None:
    """Remove what a finished stage no longer needs, and what a kill left half-written."""
    half = [*place.glob(".model.*"), *(place / SNAPSHOTS).glob(".*")]
    for path in [place / "checkpoints", *place.glob("start*"), *half]:
        remove(path)


def in_words(outcome: dict[str, Any]) -> str:
    """How a stage's training went, in one line."""
    parts = [f"{outcome['steps']:,} of {outcome['planned']:,} steps in {outcome['seconds'] / 60:.1f} min"]
    if outcome["resumed_at"]:
        parts.append(f"went on from step {outcome['resumed_at']:,}")
    if outcome["best_step"] is not None:
        start, best = outcome["start_score"], outcome["best_score"]
        parts.append(f"score {start:.2f} at the start, {best:.2f} at its best, step {outcome['best_step']:,}")
    if outcome["masked"]:
        parts.append(f"{outcome['masked']:,} pairs of rows with an equal text masked as negatives")
    if outcome["alarms"]:
        parts.append(f"{len(outcome['alarms'])} collapse alarms")
    return "; ".join(parts)


def taught(stage: Stage, data: Dataset, source: str, place: Path) -> str:
    """Where the stage's input encoder lies: with pieces learned from the data, if the stage wants them."""
    if stage.vocabulary is None:
        return source
    if not is_sealed(place):
        column = "target" if data.shape is Shape.PARALLEL else None
        texts = (text for _, name, text in data.sentences() if column in (None, name))
        encoder = Encoder.load(source, pooling=start_pooling(stage, source))
        new_vocabulary(encoder, texts, stage.vocabulary).save(place)
        seal(place)
    return str(place)


def prompts_of(plan: Plan) -> Prompts | None:
    """The plan's prompt, as an encoder takes it; None leaves the encoder its own."""
    return {"symmetric": plan.prompt} if plan.prompt else None


def build_method(stage: Stage, data: Dataset, source: str, seed: int, prompts: Prompts | None = None) -> Method:
    """The method over its input encoder, with what it starts from at random drawn from the seed."""
    kind = METHODS[stage.method]
    pooling = start_pooling(stage, source)
    encoder = Encoder.load(source, pooling=pooling, max_length=stage.max_length, prompts=prompts)
    if stage.settings.dropout is not None:
        encoder.backbone.dropout = stage.settings.dropout
    by_dropout = kind.NEEDS_DROPOUT or (kind.SHAPES[0] is Shape.PAIRS and data.shape is Shape.TEXTS)
    if by_dropout and encoder.backbone.dropout == 0:
        raise InputError(
            f"stage {stage.name}",
            f"{source}, a backbone without dropout",
            f"dropout: {stage.method} takes two views of a sentence from it, which would be identical",
            "set dropout: 0.1 in the stage",
        )
    if stage.settings.freeze_layers is not None:
        encoder.backbone.freeze(stage.settings.freeze_layers)
    torch.manual_seed(seed)
    method = kind(encoder, stage.options)
    if all("pooler" in name for name in learning(method.encoder)):  # which no vector comes from
        found, wanted = f"freeze_layers: {stage.settings.freeze_layers}", "some layer that learns"
        raise InputError(f"stage {stage.name}", found, wanted, "freeze fewer")
    return method


def refuse_no_model(target: Path) -> None:
    """Nothing but a model is replaced."""
    if target.exists() and not (target / "config.json").is_file():
        raise ModelError(str(target), "something that is no model", "a free name", "move it, or choose another folder")


def copy_model(model: Path, target: Path) -> None:
    """Put a stage's model where the user looks for it."""
    refuse_no_model(target)
    with new_folder(target) as part:
        shutil.copytree(model, part, dirs_exist_ok=True)


def start_accelerator(trackers: tuple[str, ...], folder: Path) -> Accelerator:
    """Processes, devices and precision as `accelerate launch` or torchrun set them; trackers as the recipe says."""
    there = set(map(str, get_available_trackers()))
    missing = " ".join(name for name in trackers if name not in there)  # accelerate would silently leave them out
    if missing:
        raise MissingPart("trackers", f"no package {missing}", "it, to log to", f"pip install {missing}")
    cpu = not torch.accelerator.is_available()  # said aloud, or accelerate does not join the processes of torchrun
    return Accelerator(cpu=cpu, log_with=list(trackers) or None, project_dir=str(folder))
