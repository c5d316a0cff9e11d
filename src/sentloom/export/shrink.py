"""Train a smaller encoder to give its teacher's vectors, and score both.

Raw text has no labels. Without a set to score on, the score is how far the student ranks held-out pairs of texts as its
teacher does.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil
from pathlib import Path

import numpy as np
from accelerate import Accelerator
from numpy.typing import NDArray

from sentloom.data.columns import evenly_spaced, hashes
from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.leaks import without_leaks
from sentloom.data.sentences import texts_of
from sentloom.encoder import Encoder
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.locate import refuse_no_model
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.reshaping import kept_layers, plain_pooling
from sentloom.engine.building import stage
from sentloom.engine.evaluation_sets import sentences_of
from sentloom.engine.plan import Plan
from sentloom.engine.rows import input_file
from sentloom.engine.runner import copy_encoder, prepare
from sentloom.engine.stages import Stage
from sentloom.errors import InputError, option
from sentloom.evaluation.bench import cached_scores, score_tasks
from sentloom.evaluation.metrics import cosine_of_pairs
from sentloom.evaluation.pairs import correlation_task
from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.evaluation.task import Scores, Task
from sentloom.export.backends import interleaved
from sentloom.export.export import named_tasks
from sentloom.files import write_record
from sentloom.fitting.gate import mean_measure, measure
from sentloom.fitting.measures import Measure
from sentloom.search.vectors import Vectors, normalised

Log = Callable[[str], None]
NAME = "agreement with the teacher"
HELD_OUT = 0.1  # the share of the texts that agreement is measured on, if no set is named
MOST_HELD_OUT = 2000
TIMED_TEXTS = 200
BATCH = 64


@dataclass(frozen=True)
class ShrinkRequest:
    """The options of `sentloom.shrink`, which describes them."""

    model: str  # the teacher
    output: Path
    layers: int | None = None
    student: str | None = None
    pooling: str | None = None
    epochs: float = 1.0  # below 1, this share of the texts
    steps: int | None = None
    seed: int = 1

    @property
    def folder(self) -> Path:
        """Where the work is stored, so that it can resume."""
        return Path(f"{self.output}.shrink")


@dataclass(frozen=True)
class Shrunk:
    """The result of `shrink`: the student's folder, and its scores (`after`) beside the teacher's (`before`)."""

    model: Path
    measures: tuple[Measure, ...]
    total: Measure  # the mean over all measures, or the only one
    parameters: tuple[int, int]  # of the teacher and the student
    speed: float  # how many times as fast as the teacher the student encodes, on this machine

    @property
    def encoder(self) -> Encoder:
        """The student, loaded."""
        return Encoder.load(self.model)

    def __str__(self) -> str:
        before, after = (f"{count / 1e6:.1f}M" for count in self.parameters)
        lines = [f"{before} parameters before, {after} after; {self.speed:.2f} times as fast"]
        mean = [self.total] if len(self.measures) > 1 else []
        return "\n".join([*lines, *map(_score_line, [*self.measures, *mean])])


def _score_line(gain: Measure) -> str:
    interval = f"{100 * gain.level:.4g}% interval {gain.low:+.2f} to {gain.high:+.2f}, {gain.items:,} items"
    scores = f"{gain.before:.2f} before, {gain.after:.2f} after, {gain.difference:+.2f} ({interval})"
    return f"{gain.label}, {gain.metric}: {scores}"


def shrink(
    request: ShrinkRequest,
    data: Dataset,
    against: Sequence[str],
    sets: Path | None,
    accelerator: Accelerator,
    log: Log = lambda line: None,
) -> Shrunk:
    """Train the student, score it beside its teacher, and write it. The same call resumes."""
    refuse_bad_output(request)
    teacher = shared_encoder(request.model, pooling=request.pooling)
    named = named_tasks(against, sets) if against else []
    texts = apart_from(named, data)
    training, held_out = (texts, []) if named else divided(texts)
    training = reached(training, request)
    file = input_file(training, request.folder, log)
    plan = student_plan(request, teacher, file.name)
    file.write()
    log(f"{len(training):,} texts to train on" + (f", {len(held_out):,} held out" if held_out else ""))
    (runner,) = prepare([plan], request.folder, accelerator, log)
    model = runner.run()[0].model
    assert model is not None, "the last stage trains an encoder"
    tasks = named or [agreement_task(teacher, held_out)]
    timed = (held_out or training[:TIMED_TEXTS]["text"])[:TIMED_TEXTS]
    shrunk = _compared(request, teacher, shared_encoder(model), tasks, timed)
    copy_encoder(model, request.output)
    write_record(request.folder / "result.json", {**asdict(shrunk), "model": str(request.output)})
    return shrunk


def refuse_bad_output(request: ShrinkRequest) -> None:
    """Refuse to replace the teacher, or anything that is not a model."""
    if Path(request.model).exists() and Path(request.model).resolve() == request.output.resolve():
        raise InputError("output", f"{request.output} is the model to shrink", "another folder", "choose another name")
    refuse_no_model(request.output)


def apart_from(tasks: Sequence[Task], data: Dataset) -> Dataset:
    """The distinct texts of the data that no task scores."""
    texts = without_leaks(texts_of(data), [sentences_of(task) for task in tasks])
    if not len(texts):
        names = " and ".join(task.name for task in tasks)
        problem = f"every text is also in {names}, which the models are scored on"
        fix = f"name other text to train on, or another set: {option('against', 'SET')}"
        raise InputError(data.files[0], problem, "text that is not scored", fix)
    return texts


def divided(texts: Dataset) -> tuple[Dataset, list[str]]:
    """Texts to train on, and texts to score on, chosen by a hash of each text."""
    count = min(int(HELD_OUT * len(texts)), MOST_HELD_OUT)
    if count < 2 * LEAST_CLUSTERS:
        problem = f"there are {len(texts):,} distinct texts, too few to hold some out"
        fix = f"give more text, or a set to score on: {option('against', 'SET')}"
        raise InputError(texts.files[0], problem, f"at least {round(2 * LEAST_CLUSTERS / HELD_OUT)}", fix)
    keys = np.concatenate([hashes(chunk) for chunk in texts.column("text").chunks])
    held_out = np.zeros(len(texts), bool)
    held_out[np.argsort(keys, kind="stable")[:count]] = True
    return texts.select(~held_out), texts.select(held_out)["text"]


def reached(texts: Dataset, request: ShrinkRequest) -> Dataset:
    """The texts that the training reaches, evenly spaced: the teacher encodes no others."""
    rows = BATCH * request.steps if request.steps else ceil(request.epochs * len(texts))
    return texts if rows >= len(texts) else texts[evenly_spaced(len(texts), rows)]


def student_plan(request: ShrinkRequest, teacher: Encoder, file: str) -> Plan:
    """Take layers of the teacher, or another model, and train it to mimic the teacher."""
    length = {"steps": request.steps} if request.steps else {"epochs": max(request.epochs, 1.0)}
    before: list[Stage] = []
    head = "none"
    if request.student is None:
        kept_layers(teacher, request.layers)  # refused before anything is written
        pooling = str(plain_pooling(Pooling.parse(request.pooling))) if request.pooling else None
        before.append(stage("shrink", name="fewer-layers", layers=request.layers, pooling=pooling))
    elif shared_encoder(request.student).dimension != teacher.dimension:
        head = "linear"
    distil = stage(
        "mse-distillation",
        name="distil",
        data=[file],
        source=request.model,
        source_pooling=request.pooling,
        head=head,
        max_length="auto",
        batch=BATCH,
        dropout=0.0,  # it would be noise in vectors that are to be matched
        **length,
    )
    base = request.student or request.model
    return Plan("shrink", base=base, stages=(*before, distil), seeds=(request.seed,))


def agreement_task(teacher: Encoder, texts: list[str]) -> Task:
    """The rank correlation of a student's cosines with the teacher's, over pairs that share no text.

    The teacher itself scores 100.
    """
    vectors = teacher.encode(texts, show_progress=True)
    left, right = disjoint_pairs(vectors).T
    gold = cosine_of_pairs(vectors[left], vectors[right])
    sides = {name: [texts[place] for place in places] for name, places in (("sentence1", left), ("sentence2", right))}
    return correlation_task(NAME, Rows({**sides, "score": gold.tolist()}, "held-out texts"))


def disjoint_pairs(vectors: Vectors) -> NDArray[np.int64]:
    """Pair up texts by their vectors (n, d) -> (n // 2, 2), each text in one pair, so that pairs are independent.

    A text's partner is drawn from the texts left, log-uniformly by its rank in similarity. Random partners would nearly
    all be unrelated, and nearest ones all be alike.
    """
    unit, random = normalised(vectors), np.random.default_rng(0)
    left, pairs = np.arange(len(vectors)), []
    while len(left) > 1:
        first, left = left[0], left[1:]
        nearest_first = np.argsort(-(unit[left] @ unit[first]), kind="stable")
        place = nearest_first[int(len(left) ** random.random()) - 1]
        pairs.append((first, left[place]))
        left = np.delete(left, place)
    return np.array(pairs, np.int64).reshape(-1, 2)


def _compared(
    request: ShrinkRequest, teacher: Encoder, student: Encoder, tasks: Sequence[Task], texts: Sequence[str]
) -> Shrunk:
    before, after = (_scored(encoder, tasks, request.folder / "scores") for encoder in (teacher, student))
    measures = [
        measure(task, task.name, "deciding", old, new) for task, old, new in zip(tasks, before, after, strict=True)
    ]
    teachers, students = (
        [scores[task.main] for task, scores in zip(tasks, by_task, strict=True)] for by_task in (before, after)
    )
    seconds = interleaved({"teacher": partial(teacher.encode, texts), "student": partial(student.encode, texts)})
    return Shrunk(
        request.output,
        tuple(measures),
        mean_measure(measures, teachers, students),
        (_parameters(teacher), _parameters(student)),
        seconds["teacher"] / seconds["student"],
    )


def _scored(encoder: Encoder, tasks: Sequence[Task], folder: Path) -> list[Scores]:
    """The scores on each task, from an earlier call if there are any."""
    key = encoder.fingerprint()
    return [cached_scores(folder, key, task, partial(_score, encoder, task)) for task in tasks]


def _score(encoder: Encoder, task: Task) -> Scores:
    return score_tasks(encoder, [task], show_progress=True)[0]


def _parameters(encoder: Encoder) -> int:
    return sum(parameter.numel() for parameter in encoder.parameters())
