"""The loop: one for every method, on one process or many. Read it from `train` down.

Everything random in a step comes from (seed, step), so a run that is killed and resumed from a checkpoint ends
bit-identical to an uninterrupted one, on the same machine with the same number of threads.
"""

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from accelerate import Accelerator

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.errors import InputError, ModelError, TrainingStopped
from sentloom.files import new_file
from sentloom.interrupts import stop_asked
from sentloom.methods import Learner, Method
from sentloom.methods.settings import Settings
from sentloom.progress import OutOfTime, progress
from sentloom.training.checkpoints import (
    Checkpoint,
    changing_state,
    frozen_hash,
    load_changing_state,
    newest_checkpoint,
    newest_step,
    put_back,
    read_best,
    tensors_of,
    write_best,
    write_checkpoint,
)
from sentloom.training.gradients import add_gradients, average_gradients, from_main
from sentloom.training.health import (
    GAUGE_EVERY,
    JOURNAL,
    WATCH_EVERY,
    Gauges,
    Journal,
    alarms,
    best_of,
    gauge,
    overflowing,
)
from sentloom.training.optimizers import (
    build_optimizer,
    gradient_norm,
    learning,
    load_optimizer_state,
    optimizer_state,
    rate,
    set_rate,
    stable_steps,
    total_steps,
)

SNAPSHOTS = "snapshots"  # their folder
FEWEST_STEPS = 2  # before the decay, however late it is
SAMPLE = 128  # distinct sentences on which the gauges are measured


@dataclass(frozen=True)
class Selection:
    """Score the encoder every `every` steps (higher is better), keep the best, and optionally stop early."""

    score: Callable[[Any], float]
    every: int
    patience: int | None = None  # stop after this many scores in a row without a new best
    endurance: int | None = None  # stop after this many scores below the previous one, over the whole run
    keep: Literal["best", "last"] = "best"


@dataclass
class Progress:
    """The progress of a run, apart from tensors: all of it goes into checkpoints."""

    step: int = 0
    seconds: float = 0.0
    window: list[float] = field(default_factory=list)  # losses since the last line of the journal
    scores: list[tuple[int, float]] = field(default_factory=list)  # (step, score); step 0 is the untrained encoder
    best: dict[str, Any] | None = None  # step, score, and the stored file
    masked: int = 0  # pairs of rows that share a text and were not used as negatives
    best_gauges: dict[str, float] | None = None  # each gauge at its healthiest; empty if there are no vectors
    alarms: list[str] = field(default_factory=list)
    continued_at: int = 0  # the step of a shorter run that this one continues


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    steps: int
    planned: int
    seconds: float
    start_score: float | None
    best_step: int | None
    best_score: float | None
    masked: int
    alarms: tuple[str, ...]
    resumed_at: int
    continued_at: int = 0  # the step of a shorter run that this one continues


@dataclass(frozen=True)
class Trunk:
    """What runs of different lengths with the schedule warmup-stable-decay have in common: the steps before the decay.

    A run starts from the newest checkpoint in `folder` that is not beyond its own decay, and leaves one there where its
    decay begins. If a decay at a later step would end after `limit` seconds, at the speed of the steps so far, the run
    leaves its checkpoint and raises `OutOfTime`; it takes at least `FEWEST_STEPS`.
    """

    folder: Path
    limit: float = math.inf  # seconds for the whole run, with its decay


def train(
    method: Learner,
    data: Dataset,
    settings: Settings,
    *,
    seed: int,
    folder: Path,
    accelerator: Accelerator | None = None,
    selection: Selection | None = None,
    trunk: Trunk | None = None,
    title: str = "training",
    log: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Train a method on data. Its encoder is then the best one scored, or the last one without `selection`.

    Checkpoints, the journal and, if asked for, snapshots of the encoder are written to `folder`. Called again with the
    same arguments, it resumes from the newest checkpoint. With a `trunk`, it continues a shorter run of the same stage,
    and the result is bit-identical to an uninterrupted run. `log` gets messages for the user: alarms, bad checkpoints.
    """
    run = _Run(method, data, settings, seed, folder, accelerator or Accelerator(), selection, trunk, log)
    resumed_at = run.prepare()
    rows = settings.batch * settings.accumulate * len(text_columns(data.shape))
    with (
        progress(
            title, run.total * rows, "sentences", run.accelerator.is_main_process, done=run.now.step * rows
        ) as advance,
        stop_asked() as stop,
    ):
        while run.now.step < run.total and not run.has_enough():
            run.share_trunk()
            loss = run.step()
            advance(rows, run.note(loss))
            if run.agreed(stop()):
                run.checkpoint()
                raise KeyboardInterrupt
            run.checkpoint_if_due()
    return run.finish(resumed_at)


@dataclass
class _Run:
    method: Learner
    data: Dataset
    settings: Settings
    seed: int
    folder: Path
    accelerator: Accelerator
    selection: Selection | None
    trunk: Trunk | None
    log: Callable[[str], None]

    def prepare(self) -> int:
        """Build what the run needs and resume from the newest checkpoint; returns its step, 0 for a fresh run."""
        if self.accelerator.mixed_precision not in ("no", "bf16"):
            problem = f"the mixed precision {self.accelerator.mixed_precision} is not supported"
            raise InputError("training", problem, "bf16 or none", "bf16 needs no loss scaling and is as fast")
        self.method.to(self.accelerator.device)
        self.batches = self.settings.batches(self.data, self.seed)
        self.total = self.settings.total_steps(self.batches.per_epoch)
        self.parameters = learning(self.method)
        self.optimizer = build_optimizer(self.method, self.settings)
        self.frozen = frozen_hash(self.method)
        self.now = Progress()
        self.gauged_at = -1  # the step whose vectors were last found to be finite
        self.started = self.clock = self.saved = time.monotonic()
        self._resume()
        if from_main(self.accelerator, self.now.step) != self.now.step:
            problem = f"this process has a checkpoint of step {self.now.step}, and the first process another"
            raise InputError(str(self.folder), problem, "one folder that all processes see", "use a shared disk")
        fresh = self.now.best_gauges is None
        self.journal = Journal(self.folder, self.accelerator, -1 if fresh else self.now.step)
        if fresh:
            gauges = self._gauges()
            self.now.best_gauges = gauges.to_dict() if gauges else {}
            self.journal.write(0, **self.now.best_gauges, **self.method.readings())
            if self.selection:
                self._score()
        self._snapshot()
        self.first, self.first_began = self.now.step, time.monotonic()
        return 0 if self.now.step == self.now.continued_at else self.now.step

    def step(self) -> float:
        """One update: gradients, health checks, optimiser, `after_step`; then log and score."""
        now, settings = self.now, self.settings
        self.method.train()
        self.optimizer.zero_grad()
        loss = 0.0
        for part in range(settings.accumulate):
            batch = self.batches.batch(now.step * settings.accumulate + part)
            loss += add_gradients(self.method, batch, self.accelerator, settings.chunk, self._share_of_gradient())
            now.masked += self.method.masked(batch)
        loss /= settings.accumulate
        average_gradients(self.method, self.accelerator)
        norm = gradient_norm(self.parameters.values(), settings.clip)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._refuse(loss, norm)
        learning_rate = self._learning_rate()
        set_rate(self.optimizer, learning_rate)
        self.optimizer.step()
        self.method.after_step()
        now.step += 1
        now.window.append(loss)
        if now.step % settings.log_every == 0 or now.step == self.total:
            self._log(learning_rate, norm)
        elif now.step % WATCH_EVERY == 0:
            self._watch(self._gauges())
        if self.selection and (now.step % self.selection.every == 0 or now.step == self.total):
            self._score()
        self._snapshot()
        return loss

    def _share_of_gradient(self) -> float:
        """What the gradient of one batch counts."""
        divided = self.settings.gather == "without-gradient" and isinstance(self.method, Method)
        return 1 / self.settings.accumulate / (self.accelerator.num_processes if divided else 1)

    def _learning_rate(self) -> float:
        """The learning rate of the next update."""
        settings = self.settings
        warmup = settings.warmup if settings.warmup_steps is None else settings.warmup_steps
        by = (settings.schedule, self.now.step, self.total, warmup, settings.decay, settings.decay_factor)
        return settings.learning_rate * rate(*by)

    def note(self, loss: float) -> str:
        """The latest numbers, for the progress bar."""
        score = f" score {self.now.scores[-1][1]:.2f}" if self.now.scores else ""
        return f"loss {loss:.3f}{score}"

    def has_enough(self) -> bool:
        """Whether the scores call for stopping early."""
        if self.selection is None or len(self.now.scores) < 2:
            return False
        scores = [score for _, score in self.now.scores[1:]]
        patience, endurance = self.selection.patience, self.selection.endurance
        since_best = len(scores) - 1 - int(np.argmax(scores))
        drops = sum(after < before for before, after in pairwise(scores))
        return (patience is not None and since_best >= patience) or (endurance is not None and drops >= endurance)

    def agreed(self, asked: bool) -> bool:
        """Whether any process was asked: a signal may not reach all of them, or not in the same step."""
        if self.accelerator.num_processes == 1:
            return asked
        votes = torch.tensor([float(asked)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(votes, reduction="sum") > 0)

    def checkpoint_if_due(self) -> None:
        """Save a checkpoint if the last one is old enough, by the clock of any process."""
        due = time.monotonic() - self.saved >= self.settings.checkpoint_seconds
        if self.agreed(due) and self.now.step < self.total:
            self.checkpoint()

    def share_trunk(self) -> None:
        """Leave a checkpoint for longer runs where the decay begins, or where the time is over before it does."""
        if self.trunk is None or self.now.step > (stable := stable_steps(self.total, self.settings.decay)):
            return
        late = self.now.step >= FEWEST_STEPS and self.agreed(self._ends_after(self.trunk.limit))
        if self.now.step < stable and not late:
            return
        if newest_step(self.trunk.folder) < self.now.step:
            self.checkpoint(self.trunk.folder)
            if self.accelerator.is_main_process:
                shutil.copyfile(self.journal.path, self.trunk.folder / JOURNAL)
        if self.now.step < stable:
            raise OutOfTime(self.now.step)

    def _ends_after(self, limit: float) -> bool:
        """Whether the run would end later than after `limit` seconds if its decay began one step later."""
        took = time.monotonic() - self.started
        per_step = (time.monotonic() - self.first_began) / max(1, self.now.step - self.first)
        return took + per_step * (total_steps(self.now.step + 1, self.settings.decay) - self.now.step) > limit

    def checkpoint(self, folder: Path | None = None) -> None:
        """Save everything that changes, unless it has non-finite values."""
        self._refuse_non_finite()
        if self.accelerator.is_main_process:
            self._tick()
            tensors, values = optimizer_state(self.optimizer)
            facts = {
                **vars(self.now),
                "optimizer": values,
                "machine": _machine(self.accelerator),
                "frozen": self.frozen,
            }
            write_checkpoint(folder or self._checkpoints, Checkpoint(changing_state(self.method), tensors, facts))
        self.accelerator.wait_for_everyone()
        self.saved = time.monotonic()

    def finish(self, resumed_at: int) -> Outcome:
        """Restore the best encoder and summarise the run."""
        best = self.now.best
        if best and self.selection and self.selection.keep == "best":
            put_back(tensors_of(self.method.scored), read_best(self._checkpoints, best["weights"]))
            self.gauged_at = -1
        self._refuse_non_finite()
        self._tick()
        if self.accelerator.is_main_process:
            (self.folder / "stopped.json").unlink(missing_ok=True)  # from an earlier attempt
        self.method.eval()
        return Outcome(
            steps=self.now.step,
            planned=self.total,
            seconds=self.now.seconds,
            start_score=self.now.scores[0][1] if self.now.scores else None,
            best_step=best["step"] if best else None,
            best_score=best["score"] if best else None,
            masked=self.now.masked,
            alarms=tuple(self.now.alarms),
            resumed_at=resumed_at,
            continued_at=self.now.continued_at,
        )

    @property
    def _checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def _resume(self) -> None:
        """From the run's own newest checkpoint, or else from the trunk."""
        if checkpoint := newest_checkpoint(self._checkpoints, self.log):
            self._load(checkpoint)
        elif self.trunk and (
            checkpoint := newest_checkpoint(self.trunk.folder, self.log, stable_steps(self.total, self.settings.decay))
        ):
            self._load(checkpoint)
            self.now.continued_at, self.now.seconds = self.now.step, 0.0
            if self.accelerator.is_main_process and (self.trunk.folder / JOURNAL).is_file():
                self.folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.trunk.folder / JOURNAL, self.folder / JOURNAL)

    def _load(self, checkpoint: Checkpoint) -> None:
        facts = checkpoint.facts
        if unknown := vars(Progress()).keys() - facts.keys():
            problem = f"its checkpoints are of another version of sentloom, without {', '.join(sorted(unknown))}"
            raise InputError(str(self._checkpoints), problem, "those of this version", "choose another folder")
        if facts["frozen"] != self.frozen:
            problem = "its checkpoints are of a run with other frozen parts"
            raise InputError(str(self._checkpoints), problem, "those of this run", "choose another folder")
        if facts["machine"] != (here := _machine(self.accelerator)):
            self.log(_other_machine(facts["machine"], here))
        load_changing_state(self.method, checkpoint.state)
        load_optimizer_state(self.optimizer, checkpoint.optimizer, facts["optimizer"])
        self.now = Progress(**{name: facts[name] for name in vars(Progress())})
        self.now.scores = [(step, score) for step, score in self.now.scores]

    def _tick(self) -> None:
        """Add the time since the last tick."""
        now = time.monotonic()
        self.now.seconds += now - self.clock
        self.clock = now

    def _log(self, learning_rate: float, norm: float) -> None:
        """Write a line of the journal, with gauges if none were written for some steps."""
        now, before = self.now, self.now.step - self.settings.log_every
        due = now.step // GAUGE_EVERY > before // GAUGE_EVERY or now.step == self.total
        gauges = self._gauges() if due else None
        self._tick()
        self.journal.write(
            now.step,
            loss=float(np.mean(now.window)),
            learning_rate=learning_rate,
            gradient_norm=norm,
            masked=now.masked,
            seconds=round(now.seconds, 2),
            **(gauges.to_dict() if gauges else {}),
            **self.method.readings(),
        )
        now.window = []
        self._watch(gauges)

    def _watch(self, gauges: Gauges | None) -> None:
        """Compare the gauges with the best so far; the first alarm is logged, all go into the journal."""
        if gauges is None:
            return
        now, best = self.now, Gauges(**(self.now.best_gauges or {}))
        for alarm in alarms(gauges, best):
            if not now.alarms:
                self.log(f"collapse alarm at step {now.step}: {alarm}")
            now.alarms.append(f"step {now.step}: {alarm}")
            self.journal.write(now.step, alarm=alarm)
        now.best_gauges = best_of(gauges, best).to_dict()

    def _gauges(self) -> Gauges | None:
        """Gauges of the current vectors, always on the same sentences; stops the run if vectors are not finite."""
        rows = np.random.default_rng(self.seed).permutation(len(self.data))[: 2 * SAMPLE]
        cells = self.data.take(np.sort(rows))
        texts = [text for name in text_columns(self.data.shape) for text in cells[name] if isinstance(text, str)]
        try:
            vectors = self.method.vectors(list(dict.fromkeys(texts))[:SAMPLE])
        except ModelError:  # of `encode`
            where, batch = self._batch_of(self.now.step)
            self._stop(where, "vectors that are not finite", **batch)
        self.gauged_at = self.now.step
        return None if vectors is None else gauge(vectors)

    def _score(self) -> None:
        """Score the encoder and store a new best. The untrained encoder is scored for comparison only."""
        assert self.selection
        self._refuse_non_finite()
        now = self.now
        main = self.accelerator.is_main_process
        score = from_main(self.accelerator, self.selection.score(self.method.scored) if main else None)
        if math.isnan(score):
            self._stop(f"step {now.step}", "a score that is not a number")
        now.scores.append((now.step, score))
        self.journal.write(now.step, score=score)
        if now.step and (now.best is None or score > now.best["score"]):
            weights = write_best(self._checkpoints, now.step, tensors_of(self.method.scored)) if main else None
            now.best = {"step": now.step, "score": score, "weights": from_main(self.accelerator, weights)}

    def _snapshot(self) -> None:
        """Save the current encoder if a snapshot is due."""
        every, step = self.settings.snapshots, self.now.step
        if every and (step % every == 0 or step == self.total):
            self._refuse_non_finite()
            if self.accelerator.is_main_process:
                self.method.save(self.folder / SNAPSHOTS / f"step-{step:08d}")

    def _refuse(self, loss: float, norm: float) -> NoReturn:
        """Stop before the optimiser ruins the weights, and write the rows of the batch for the user to inspect."""
        where, rows = self._batch_of(self.now.step + 1)
        problem = f"the loss is {loss}, and the norm of the gradient {norm}"
        self._stop(where, problem, loss=str(loss), gradient_norm=str(norm), **rows)

    def _refuse_non_finite(self) -> None:
        """Stop before weights are stored that overflow or give non-finite vectors."""
        if names := overflowing(changing_state(self.method)):
            where, rows = self._batch_of(self.now.step)
            self._stop(where, f"weights are not finite, or overflow: {', '.join(names[:3])}", weights=names, **rows)
        if self.gauged_at != self.now.step:
            self._gauges()

    def _batch_of(self, step: int) -> tuple[str, dict[str, Any]]:
        """Where the rows of a step (from 1) come from, in short, and in full with their texts; step 0 has none."""
        parts = range((step - 1) * self.settings.accumulate, step * self.settings.accumulate) if step else ()
        if not parts:
            return "step 0", {}
        rows = np.concatenate([self.batches.rows(part) for part in parts])
        places = [self.data.place(int(row)) for row in rows]
        return f"step {step}, rows {', '.join(places[:3])} ...", {"places": places, **self.data.take(rows)}

    def _stop(self, where: str, problem: str, **facts: Any) -> NoReturn:
        """End the run; its checkpoints stay untouched."""
        path = self.folder / "stopped.json"
        if self.accelerator.is_main_process:
            with new_file(path) as part:
                part.write_text(json.dumps({"step": self.now.step, "found": problem, **facts}, indent=1), "utf-8")
        fix = f"see {path}; lower the learning rate, or set clip; the last checkpoint is untouched"
        raise TrainingStopped(where, problem, "finite numbers", fix)


def _other_machine(then: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """What differs from the machine that a checkpoint was made on."""
    said = [f"{name}: {then.get(name)} then, {here[name]} now" for name in here if then.get(name) != here[name]]
    return f"the checkpoint was made on another setup ({'; '.join(said)}): the last digits of the result may differ"


def _machine(accelerator: Accelerator) -> dict[str, Any]:
    """What bit-equality depends on."""
    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": accelerator.device.type,
        "processes": accelerator.num_processes,
        "precision": accelerator.mixed_precision,
    }
