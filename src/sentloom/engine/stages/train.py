"""Train an encoder with any method: an encoder and rows in, an encoder out."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from pydantic import BaseModel

from sentloom.data import columns
from sentloom.data.dataset import Dataset
from sentloom.data.nli import triplets_from_nli
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape, text_columns
from sentloom.encoder import Encoder
from sentloom.encoder.formats.format import ReadOnlyBackbone, refuse_changes
from sentloom.encoder.heads import check_dimensions
from sentloom.encoder.lengths import Cut, count_cut, covering_length
from sentloom.encoder.loading import lacks_pooling, shared_encoder, takes_default_pooling
from sentloom.encoder.locate import locate as locate_model
from sentloom.encoder.lora import add_lora
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.settings import own_pooling
from sentloom.encoder.tokens import Prompts
from sentloom.engine.artifacts import MODEL, Artifact, named_stage
from sentloom.engine.schema import Length
from sentloom.engine.stages.stage import LATER, PREVIOUS, Context, DataStage, EncoderKeys, Forecast, Inputs
from sentloom.engine.stages.timing import training_time
from sentloom.errors import InputError
from sentloom.files import remove
from sentloom.methods import METHODS, Method, Options
from sentloom.methods.settings import Settings
from sentloom.progress import OutOfTime, duration
from sentloom.training import Outcome, Selection, Trunk, train
from sentloom.training.loop import SNAPSHOTS
from sentloom.training.optimizers import learning

TRUNKS = "trunks"  # the folder of what runs of different lengths have in common
SAMPLED_ROWS = 10_000  # from which the lengths of texts are measured
PLACEHOLDER = "every sentence counts as one row of the data that an earlier stage will produce; it may keep fewer"


class Train(EncoderKeys, DataStage):
    """One method on one body of data, under every seed of the plan."""

    MODEL_KIND = "encoder"
    PRODUCES = "encoder"
    OUTPUTS = (MODEL,)
    SEEDED: ClassVar[bool] = True
    TOGETHER: ClassVar[bool] = True

    max_length: Length | Literal["auto"] | None = None  # type: ignore[assignment] # auto: from the data
    repeats: bool = False  # of sentences: each as often as it occurs, where a method learns from single ones
    options: Options = LATER
    settings: Settings = LATER

    @classmethod
    def presets(cls, method: str) -> Mapping[str, Mapping[str, Any]]:
        """The method's own; their pooling is for language models that state none."""
        return {
            name: {key: value for key, value in preset.items() if key != "pooling"}
            for name, preset in METHODS[method].PRESETS.items()
        }

    @classmethod
    def options_model(cls, values: Mapping[str, Any]) -> type[BaseModel]:
        """The method's own."""
        return METHODS[values["method"]].Options

    def models(self) -> tuple[str, ...]:
        """The encoder of the stage before."""
        return (PREVIOUS,)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes that the method trains on."""
        return METHODS[self.method].SHAPES

    def flattened(self, data: Dataset) -> Dataset:
        """The distinct sentences of rows of any shape, or all of them."""
        return texts_of(data, repeats=self.repeats)

    def fit(self, data: Dataset) -> Dataset:
        """The data as it is, as triplets, or as the distinct sentences of all its columns."""
        if data.shape in self.shapes and data.shape is not Shape.TEXTS:
            return data
        if data.shape is Shape.NLI and Shape.TRIPLETS in self.shapes:
            return triplets_from_nli(data)
        if self.takes_texts:
            return self.flattened(data)
        raise InputError(
            f"stage {self.name}",
            f"the shape of its data is {data.shape}",
            f"{' or '.join(self.shapes)}, which {self.method} learns from",
            "give such a file" + (", or let `views` make pairs" if Shape.PAIRS in self.shapes else ""),
        )

    # Pooling: the recipe's, otherwise the encoder's own, otherwise the preset's

    @property
    def preset_pooling(self) -> str | None:
        """The preset's pooling: for a language model, which states none."""
        pooling: str | None = METHODS[self.method].PRESETS[self.preset or "default"].get("pooling")
        return pooling

    @property
    def preset_prompt(self) -> Mapping[str, str] | None:
        """The preset's prompt: for a recipe that states none."""
        prompt: Mapping[str, str] | None = METHODS[self.method].PRESETS[self.preset or "default"].get("prompt")
        return prompt

    def start_pooling(self, source: str) -> str | None:
        """The pooling to load the encoder with; None leaves the encoder its own."""
        if self.pooling is not None:
            return self.pooling
        self.refuse_unstated_pooling(stated_pooling(source))
        return self.preset_pooling if takes_default_pooling(locate_model(source)) else None

    def pooling_after(self, own: str | None) -> str | None:
        """The pooling of the encoder that it produces from one with this pooling."""
        self.refuse_unstated_pooling(own)
        trained = self.pooling or own or self.preset_pooling or str(Pooling())
        after = getattr(self.options, "inference_pooling", None)
        return str(Pooling.parse(after)) if after else trained

    def refuse_unstated_pooling(self, own: str | None) -> None:
        """A method that is defined for one pooling does not change the encoder's unless the recipe says so."""
        needed = METHODS[self.method].needed_pooling(self.options)
        if self.pooling is not None or needed is None or own in (None, needed):
            return
        raise InputError(
            f"stage {self.name}",
            f"the encoder has {own} pooling, and the recipe states none",
            f"{needed} pooling, which {self.method} is defined for",
            f"write pooling: {needed} in the stage to change the encoder's pooling, or choose another method",
        )

    # What it does

    def load(self, source: str, prompts: Prompts | None) -> Encoder:
        """The encoder that it starts from, to be trained."""
        return Encoder.load(source, **self._loaded_with(source, prompts))

    def shared(self, source: str, prompts: Prompts | None) -> Encoder:
        """The same encoder, to be read only."""
        return shared_encoder(source, **self._loaded_with(source, prompts))

    def _loaded_with(self, source: str, prompts: Prompts | None) -> dict[str, Any]:
        length = None if self.max_length == "auto" else self.max_length
        return {"pooling": self.start_pooling(source), "max_length": length, "prompts": prompts}

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of a base as it is loaded."""
        return self.shared(model, prompts).fingerprint()

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Options, pooling, length, and how the best step is chosen."""
        select, selecting = context.select, context.selecting
        return {
            **super().depends(inputs, context),
            "method_revision": METHODS[self.method].REVISION,
            "pooling": self.pooling,
            "max_length": self.max_length,
            "select": select and select.model_dump(mode="json", exclude={"on", "data"}),
            "selecting": selecting and selecting.data.sha256,
        }

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Train, and save the encoder."""
        began = time.monotonic()
        data, source, accelerator = inputs.rows, inputs.model.source, context.accelerator
        method = self.build(data, source, context.seed, context.prompts)
        # A run whose decay is due before the planned step begins again, at its checkpoint: it is built once more.
        end = began + context.limits.get(self.name, math.inf) - (time.monotonic() - began)
        with accelerator.main_process_first():  # vectors are computed once, and read by the others
            method.prepare(data, context.folder / "vectors", context.log)
        cut = count_cut(method.encoder, sampled_texts(data))
        for note in (*method.notes, str(cut)):
            if note:
                context.log(note)
        self._start_trackers(context, place)
        outcome = self._train(method, inputs, place, context, end)
        for tracker in accelerator.trackers:  # a stage is a run of its own: the next one logs to another
            tracker.finish()
        accelerator.trackers = []
        encoder = method.finished().to("cpu")
        encoder.tokens.max_length = encoder_itself(
            source, str(encoder.pooling)
        ).tokens.max_length  # sentences were cut for training only
        if accelerator.is_main_process:
            encoder.save(place / MODEL, golden=False)  # written when a model leaves its stage
        plain: dict[str, Any] = json.loads(json.dumps(asdict(outcome)))  # as a later run will read it
        facts = {"outcome": plain, "seconds": plain["seconds"], "cut": asdict(cut)}
        return {**facts, "fingerprint": encoder.fingerprint()}

    def _train(self, method: Method, inputs: Inputs, place: Path, context: Context, end: float) -> Outcome:
        try:
            return train(
                method,
                inputs.rows,
                self.settings,
                seed=context.seed,
                folder=place,
                accelerator=context.accelerator,
                selection=_selection(context),
                trunk=self._trunk(inputs, context, end),
                title=f"{self.name} seed {context.seed}",
                log=context.log,
            )
        except OutOfTime as error:
            if context.accelerator.is_main_process:
                remove(place)  # the trunk has everything
            raise OutOfTime(error.step, self.name) from None

    @property
    def continues(self) -> bool:
        """Whether a longer run begins with the steps of a shorter one: its rates do not depend on its length."""
        return self.settings.schedule == "warmup-stable-decay" and self.settings.warmup_steps is not None

    def _trunk(self, inputs: Inputs, context: Context, end: float) -> Trunk | None:
        """What runs of other lengths have in common with this one; none if scores choose the step.

        It has until `end` by the clock.
        """
        if not self.continues or context.select:
            return None
        same = self.settings.model_copy(update={"steps": 1, "epochs": None, "decay": 0.5})
        key = self.model_copy(update={"settings": same}).key(inputs, context)
        return Trunk(context.folder / TRUNKS / f"{self.name}-{key}", end - time.monotonic())

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time some steps; the encoder after them has the size of the one that the next stage will get."""
        data = inputs.rows
        method = self.build(data, inputs.model.source, context.seed, context.prompts)
        before = method.rehearse(data)
        steps, seconds = training_time(method, data, self.settings, context.seed, context.accelerator)
        source = scratch / self.name
        method.finished().to("cpu").save(source, golden=False)
        note = PLACEHOLDER if any(map(named_stage, self.data)) else ""
        batch = self.settings.batch * self.settings.accumulate
        rows, leaked = len(data), inputs.leaked
        ahead = Forecast(self.name, self.method, rows, data.shape, seconds, batch, steps, leaked, note, before)
        return ahead, Artifact("encoder", str(source), "")

    def build(self, data: Dataset, source: str, seed: int, prompts: Prompts | None = None) -> Method:
        """The method over its encoder; what starts at random is drawn from the seed."""
        kind, settings = METHODS[self.method], self.settings
        encoder = self.load(source, prompts)
        if isinstance(encoder.backbone, ReadOnlyBackbone):
            refuse_changes(source)
        if self.max_length == "auto":
            encoder.tokens.max_length = covering_length(encoder, sampled_texts(data))
        if settings.dropout is not None:
            encoder.backbone.dropout = settings.dropout
        by_dropout = kind.NEEDS_DROPOUT or (kind.SHAPES[0] is Shape.PAIRS and data.shape is Shape.TEXTS)
        if by_dropout and encoder.backbone.dropout == 0:
            raise InputError(
                f"stage {self.name}",
                f"{source} has no dropout",
                f"dropout: {self.method} takes two views of a sentence from it, which would be identical",
                "set dropout: 0.1 in the stage",
            )
        if settings.activation_checkpointing:
            encoder.backbone.checkpoint_activations()
        if settings.freeze_layers is not None:
            encoder.backbone.freeze(settings.freeze_layers)
        torch.manual_seed(seed)
        if settings.lora is not None:
            add_lora(encoder, settings.lora.rank, settings.lora.alpha)
        method = kind(encoder, self.options)
        if dimensions := getattr(self.options, "dimensions", None):
            check_dimensions(f"stage {self.name}", encoder, dimensions)
        if all("pooler" in name for name in learning(method.encoder)):  # no vector comes from the pooler
            problem = f"freeze_layers is {settings.freeze_layers}, which freezes the whole model"
            raise InputError(f"stage {self.name}", problem, "some layer that learns", "freeze fewer")
        return method

    def reused(self, place: Path) -> str:
        """Snapshots cannot be taken afterwards."""
        lacking = self.settings.snapshots and not (place / SNAPSHOTS).is_dir()
        return "trained without snapshots; train in another folder to have them" if lacking else ""

    def _start_trackers(self, context: Context, place: Path) -> None:
        if context.trackers:
            config = {"method": self.method, **self.options.model_dump(), **self.settings.model_dump()}
            plain = {name: value if isinstance(value, int | float) else str(value) for name, value in config.items()}
            context.accelerator.init_trackers(place.name, config=plain)

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How the training went."""
        outcome = record["outcome"]
        parts = [f"{outcome['steps']:,} of {outcome['planned']:,} steps in {duration(outcome['seconds'])}"]
        if outcome.get("continued_at"):
            parts.append(f"continued a shorter run at step {outcome['continued_at']:,}")
        if outcome["resumed_at"]:
            parts.append(f"resumed at step {outcome['resumed_at']:,}")
        if outcome["best_step"] is not None:
            start, best = outcome["start_score"], outcome["best_score"]
            parts.append(f"score {start:.2f} at the start, {best:.2f} at the best step, {outcome['best_step']:,}")
        if outcome["masked"]:
            pairs = "1 pair" if outcome["masked"] == 1 else f"{outcome['masked']:,} pairs"
            parts.append(f"{pairs} of rows with an equal text masked as negatives")
        if cut := str(Cut(**record["cut"])) if "cut" in record else "":
            parts.append(cut)
        if outcome["alarms"]:
            parts.append(f"{len(outcome['alarms'])} collapse alarms")
        return "; ".join(parts)


def sampled_texts(data: Dataset) -> list[str]:
    """Texts of all columns, from evenly spaced rows."""
    return [text for name in text_columns(data.shape) for text in columns.sampled_texts(data, name, SAMPLED_ROWS)]


def encoder_itself(model: str, pooling: str | None) -> Encoder:
    """An encoder as it is; a model made for writing, which lacks a pooling, has this one."""
    return shared_encoder(model, pooling=pooling if lacks_pooling(locate_model(model)) else None)


def stated_pooling(model: str) -> str | None:
    """The pooling that a model states; None for a plain language model."""
    pooling = own_pooling(locate_model(model))
    return None if pooling is None else str(pooling)


def _selection(context: Context) -> Selection | None:
    select, selecting = context.select, context.selecting
    if not (select and selecting):
        return None
    return Selection(selecting.score, select.every, select.patience, select.endurance, select.keep)
