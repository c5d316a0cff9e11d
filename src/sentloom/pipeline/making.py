"""Make what later stages name: text-to-text models and data. Once for all seeds, before the first encoder learns.

    DIR/stages/writer-1f0c.../          a model: model/, log.jsonl, result.json; checkpoints/ only while it runs
    DIR/stages/written-ledger-77ab.../  every sentence that was written, with its score
    DIR/stages/written-03d1.../         what the filters kept: triplets.parquet, pairs.parquet, and summary.json

Whatever is complete is used as it is. Other filters, or more rows, go on with the ledger that is there.
"""

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from sentloom.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.errors import InputError
from sentloom.files import new_folder, read_result, write_result
from sentloom.methods import TokenMethod
from sentloom.pipeline.keys import ledger_key, making_key, synthetic_key
from sentloom.pipeline.makers import Synthesize, SynthesizeOptions
from sentloom.pipeline.plan import Making
from sentloom.pipeline.references import PAIRS, PREFIX, named_stage
from sentloom.training.distributed import from_main
from sentloom.training.journal import read_journal
from sentloom.writing.denoising import Denoising, DenoisingOptions
from sentloom.writing.learning import apart, learn_to_denoise, learn_to_write_and_judge
from sentloom.writing.ledger import PLAN, Ledger
from sentloom.writing.summary import Summary
from sentloom.writing.synthesize import synthesize
from sentloom.writing.synthesizer import Synthesizer, SynthesizerOptions
from sentloom.writing.text_to_text import TextToText
from sentloom.writing.triplets import PAIRS as PAIRS_FILE
from sentloom.writing.triplets import SUMMARY, TRIPLETS, draw

MODEL = "model"


@dataclass(frozen=True)
class Made:
    """What a making stage gave: its key, its folder, and what is known of it."""

    key: str
    place: Path
    record: dict[str, Any]

    @property
    def model(self) -> Path | None:
        """Where its model lies; None if it made data."""
        return None if self.record["method"] == Synthesize.NAME else self.place / MODEL


@dataclass
class Workshop:
    """Does the making stages of a plan, one after another."""

    folder: Path  # DIR/stages
    accelerator: Accelerator
    log: Callable[[str], None]
    made: dict[str, Made] = field(default_factory=dict)  # so far, by stage

    def make(self, stage: Making, data: Dataset, leaked: int) -> None:
        """Do what a stage says, or find it done."""
        name = named_stage(stage.model)
        source = str(self.made[name].place / MODEL) if name else stage.model
        hashed = self.made[name].key if name else text_model(stage, source).sha256
        if isinstance(stage.options, SynthesizeOptions):
            key, place, facts = self._synthesize(stage, stage.options, data, source, hashed)
        else:
            key, place, facts = self._learn(stage, data, source, hashed)
        about = {"stage": stage.name, "method": stage.method, "seed": stage.seed, "key": key, "input": hashed}
        self.made[stage.name] = Made(key, place, from_main(self.accelerator, {**facts, **about, "leaked": leaked}))

    def open(self, name: str) -> Dataset:
        """The data that `stage:NAME` or `stage:NAME/pairs` stands for."""
        made = self.made[str(named_stage(name))]
        what, file = ("pairs", PAIRS_FILE) if name.endswith(PAIRS) else ("triplets", TRIPLETS)
        if not made.record[what]:
            found = f"no {what} that the filters kept, of {made.record['sources']:,} sentences"
            fix = "lower its threshold, or take a synthesizer that writes better"
            raise InputError(f"stage {name.removeprefix(PREFIX)}", found, "some to learn from", fix)
        return open_data(made.place / file)

    def _learn(self, stage: Making, data: Dataset, source: str, hashed: str) -> tuple[str, Path, dict[str, Any]]:
        key = making_key(stage, data, hashed, f"{self.accelerator.mixed_precision} {self.accelerator.num_processes}")
        place = self.folder / f"{stage.name}-{key}"
        if kept := read_result(place, self.log):
            self._say_kept(stage, place)
            return key, place, {**kept, "losses": _losses(place)}
        facts = _trained(stage, data, source, place, self.accelerator, lambda text: self.log(f"{stage.name}: {text}"))
        facts["losses"] = _losses(place)
        self.log(f"{stage.name}: {in_words(facts)}")
        return key, place, facts

    def _synthesize(
        self, stage: Making, options: SynthesizeOptions, data: Dataset, source: str, hashed: str
    ) -> tuple[str, Path, dict[str, Any]]:
        ledger = ledger_key(options, data, hashed)
        key = synthetic_key(options, ledger)
        place = self.folder / f"{stage.name}-{key}"
        with self.accelerator.main_process_first():  # the others find it done
            if kept := read_result(place, self.log):
                self._say_kept(stage, place)
                return key, place, kept
            start = time.perf_counter()
            shelf = self.folder / f"{stage.name}-ledger-{ledger}"
            summary = _written(options, data, source, shelf)
            facts = {**_facts(summary), "seconds": time.perf_counter() - start, "data": _about(data)}
            _put(shelf, place, facts)
        self.log(f"{stage.name}: {in_words(facts)}")
        return key, place, facts

    def _say_kept(self, stage: Making, place: Path) -> None:
        self.log(f"{stage.name}: done before, kept in {place}")


def text_model(stage: Making, name: str) -> TextToText:
    """A model under the prompts and lengths that the stage gives it."""
    options = stage.options
    if isinstance(options, SynthesizeOptions):
        return TextToText.load(name)
    assert isinstance(options, SynthesizerOptions | DenoisingOptions)
    wording = options.wording if isinstance(options, SynthesizerOptions) else None
    return TextToText.load(
        name, wording=wording, source_length=options.source_length, target_length=options.target_length
    )


def learner(stage: Making, data: Dataset, name: str) -> tuple[TokenMethod, Dataset]:
    """What a stage would train, and on what: for a look ahead."""
    model = text_model(stage, name)
    if isinstance(stage.options, SynthesizerOptions):
        return Synthesizer(model, stage.options), learned_rows(stage, data)
    assert isinstance(stage.options, DenoisingOptions)
    return Denoising(model, stage.options), data


def learned_rows(stage: Making, data: Dataset) -> Dataset:
    """The rows that are not held out."""
    return apart(data, stage.options.held_out)[0] if isinstance(stage.options, SynthesizerOptions) else data


def _trained(
    stage: Making, data: Dataset, source: str, place: Path, accelerator: Accelerator, log: Callable[[str], None]
) -> dict[str, Any]:
    options, settings = stage.options, stage.settings
    assert settings is not None
    how: dict[str, Any] = {"seed": stage.seed, "folder": place, "accelerator": accelerator, "tell": log}
    if isinstance(options, SynthesizerOptions):
        return learn_to_write_and_judge(source, data, options, settings, **how)
    assert isinstance(options, DenoisingOptions)
    return learn_to_denoise(source, data, options, settings, **how)


def _written(options: SynthesizeOptions, data: Dataset, source: str, shelf: Path) -> Summary:
    """Write what the ledger lacks; the model is not loaded where it lacks nothing."""
    rows = min(options.rows or len(data), len(data))
    if (shelf / PLAN).is_file() and not (ledger := Ledger.open(shelf)).missing(rows):
        return draw(ledger, options.filtering, rows=rows)
    return synthesize(
        data,
        source,
        shelf,
        options.sampling,
        options.filtering,
        rows=rows,
        backend=options.backend,
        engine=options.engine,
        workers=options.workers,
        block=options.block,
    )


def _facts(summary: Summary) -> dict[str, Any]:
    kinds = {kind: {"written": one.written, "kept": one.kept} for kind, one in summary.kinds.items()}
    return {"sources": summary.sources, "triplets": summary.triplets, "pairs": summary.pairs, "kinds": kinds}


def _about(data: Dataset) -> dict[str, Any]:
    return {"rows": len(data), "sha256": data.sha256, "skipped": dict(data.skipped)}


def _put(shelf: Path, place: Path, facts: dict[str, Any]) -> None:
    """Take what was drawn from a ledger to a folder of its own, since other filters will draw anew."""
    with new_folder(place) as part:
        for name in (TRIPLETS, PAIRS_FILE, SUMMARY):
            shutil.copyfile(shelf / name, part / name)
        write_result(part, facts, TRIPLETS, PAIRS_FILE, SUMMARY)


def _losses(place: Path) -> list[float]:
    """The first and the last loss that the journal has, a token's."""
    found = [line["loss"] for line in read_journal(place) if "loss" in line]
    return [found[0], found[-1]] if found else []


def seconds_of(record: dict[str, Any]) -> float:
    """How long a making stage took."""
    return float(record["outcome"]["seconds"] if "outcome" in record else record["seconds"])


def in_words(record: dict[str, Any]) -> str:
    """What a making stage came to, in one line."""
    if "triplets" in record:
        share = record["triplets"] / max(1, record["sources"])
        parts = [f"{one['kept'] / max(1, one['written']):.1%} of {kind}s kept" for kind, one in record["kinds"].items()]
        return (
            f"{record['triplets']:,} triplets and {record['pairs']:,} pairs of {record['sources']:,} sentences "
            f"(yield {share:.1%}; {', '.join(parts)})"
        )
    if "held_out" in record:
        before, after = (record["held_out"][name] for name in ("before", "after"))
        return (
            f"accuracy {before['accuracy']:.1%} -> {after['accuracy']:.1%}, perplexity {before['perplexity']:.1f} -> "
            f"{after['perplexity']:.1f} on {after['rows']:,} held-out sentences"
        )
    perplexities = " -> ".join(f"{math.exp(min(loss, 100.0)):.1f}" for loss in record["losses"])
    told = f"perplexity {perplexities} in training, " if perplexities else ""
    return f"{told}{record['outcome']['steps']:,} steps on {record['data']['rows']:,} sentences"
