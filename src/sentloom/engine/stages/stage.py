"""The contract of a stage: it takes artifacts and produces one artifact.

A stage is a frozen set of plain values, as a recipe writes them. `engine.runner` resolves its inputs, asks for its
content `key`, reuses the artifact that is stored under that key, or calls `run` and writes the record.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from accelerate import Accelerator
from pydantic import AfterValidator, BaseModel, Field, model_validator

from sentloom.data.dataset import Dataset
from sentloom.data.layout import shape_of_roles
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.encoder.device import precision_for
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.lora import require_peft
from sentloom.encoder.tokens import Prompts
from sentloom.engine.artifacts import Artifact, Kind, content_key, named_stage
from sentloom.engine.evaluation_sets import EvaluationSet
from sentloom.engine.rows import Opened, clean_data, refuse_leaks
from sentloom.engine.schema import PoolingName, Select, Strict, Text, at_least_one
from sentloom.errors import InputError
from sentloom.methods.settings import Settings
from sentloom.search.cross_encoder import CrossEncoder

Log = Callable[[str], None]
PREVIOUS = ""  # as a model's name: the encoder of the stage before, or the base
BASE = "base"  # as a model's name: the base of the plan, whatever stages come before
TEACHER = "teacher"  # the option that names a cross-encoder
LATER: Any = None  # options and settings are filled in once they have been checked
ENGINE = 1  # raised when the numbers of the training loop change
ONCE = "runs once for all seeds"
IDLE = {"log_every", "checkpoint_seconds", "snapshots", "activation_checkpointing"}  # settings that change no number


def _stage_name(name: str) -> str:
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError("a name of letters, digits, _ and -")
    return name


def _roles(columns: dict[str, str | int]) -> dict[str, str | int]:
    try:
        shape_of_roles(list(columns))
    except InputError as error:
        raise ValueError(error.expected) from None
    return columns


Column = str | Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Context:
    """What all stages of a run share."""

    folder: Path  # stages/, scores/, and caches: views/, vectors/
    accelerator: Accelerator
    log: Log
    seed: int
    prompts: Prompts | None = None  # around every sentence
    select: Select | None = None
    selecting: EvaluationSet | None = None
    trackers: tuple[str, ...] = ()
    # By stage: the seconds that it may take. A training decays early; a stage that makes data stops (`OutOfTime`).
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        """Precision and number of processes: the numbers of a training depend on both."""
        return f"{self.accelerator.mixed_precision} {self.accelerator.num_processes}"

    @property
    def inference(self) -> str | None:
        """The precision of a stage that trains nothing; None for fp32, the default."""
        precision = precision_for()
        return None if precision == "fp32" else precision


@dataclass(frozen=True)
class Inputs:
    """The artifacts and rows that a stage takes."""

    models: tuple[Artifact, ...] = ()
    data: Dataset | None = None
    leaked: int = 0  # sentences of the evaluation sets in the data

    @property
    def model(self) -> Artifact:
        """The encoder or the writer of a stage that takes one."""
        return self.models[0]

    @property
    def rows(self) -> Dataset:
        """The data of a stage that takes some."""
        assert self.data is not None
        return self.data


@dataclass(frozen=True)
class Forecast:
    """What a stage would do under one seed, and for how long; `steps` is 0 if nothing is trained.

    Times are measured on a small sample here and now. Scoring is not included.
    """

    stage: str
    method: str
    rows: int
    shape: Shape | None
    seconds: float
    batch: int = 0
    steps: int = 0
    leaked: int = 0
    note: str = ""
    before: float = 0.0  # seconds before the first step, once for all seeds; of a data stage: for any number of rows


def content_of(key: str, model: str) -> str:
    """A hash of the model that an option names: `teacher` is a cross-encoder, any other an encoder."""
    return CrossEncoder.load(model).identity if key == TEACHER else shared_encoder(model).fingerprint()


def _each(value: str | tuple[str, ...], change: Callable[[str], str]) -> str | tuple[str, ...]:
    return change(value) if isinstance(value, str) else tuple(map(change, value))


class Stage(Strict):
    """One step of a plan. Its fields are the keys of a recipe; options and settings are written beside them."""

    PRODUCES: ClassVar[Kind]
    MODEL_KIND: ClassVar[Kind | None] = None  # the kind of model that it takes
    PARTS: ClassVar[tuple[str, ...]] = ("",)  # of a dataset: what may follow `stage:NAME`
    OUTPUTS: ClassVar[tuple[str, ...]]  # files and folders whose hashes go into the record
    REVISION: ClassVar[int] = 1  # raised when the same inputs give another artifact
    SEEDED: ClassVar[bool] = False  # the plan's seed decides the result
    TOGETHER: ClassVar[bool] = False  # all processes run it together; otherwise the main process runs it alone
    OPTIONS: ClassVar[type[BaseModel]]
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}

    name: Annotated[str, AfterValidator(_stage_name)]
    method: str
    preset: str | None = None
    options: BaseModel = LATER
    settings: Settings | None = None  # None: nothing is trained

    # What its options and presets are

    @classmethod
    def presets(cls, method: str) -> Mapping[str, Mapping[str, Any]]:
        """The presets of a method: options and settings by name."""
        return cls.PRESETS

    @classmethod
    def options_model(cls, values: Mapping[str, Any]) -> type[BaseModel]:
        """The model that its options are checked against."""
        return cls.OPTIONS

    @classmethod
    def trains(cls) -> bool:
        """Whether it has settings of training."""
        return cls.TOGETHER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        models = {name: _each(value, locate) for name, value in self._named().items()}
        return self.model_copy(update={"options": self.options.model_copy(update=models)})

    # What it takes

    def models(self) -> tuple[str, ...]:
        """The models that it takes: names, `stage:NAME`, BASE or PREVIOUS."""
        return ()

    def makers(self) -> tuple[str, ...]:
        """Names of translators and masked language models that make its data."""
        return ()

    def other_models(self) -> list[tuple[str, str]]:
        """Models that its options name, each with its key: `teacher` is a cross-encoder, any other an encoder."""
        named = self._named().items()
        return [(name, model) for name, value in named for model in ((value,) if isinstance(value, str) else value)]

    def _named(self) -> dict[str, str | tuple[str, ...]]:
        named = {name: getattr(self.options, name) for name in getattr(self.options, "MODELS", ())}
        return {name: value for name, value in named.items() if value is not None}

    @classmethod
    def takes_model_of(cls, other: "type[Stage]", method: str) -> bool:
        """Whether `model` may name a stage of this class and method."""
        return other.PRODUCES == cls.MODEL_KIND

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of a model that no stage produced, as this stage loads it."""
        raise NotImplementedError

    @property
    def sources(self) -> tuple[str, ...]:
        """The files and stages that it reads rows from."""
        return ()

    def references(self) -> list[str]:
        """The names of the stages whose artifacts it takes."""
        return [name for value in (*self.models(), *self.sources) if (name := named_stage(value)) is not None]

    def read(self, evaluated: Sequence[Dataset], opened: Opened | None = None) -> tuple[Dataset | None, int]:
        """Its rows, if it takes any, and how many sentences of the evaluation sets are among them."""
        return None, 0

    def trained_rows(self, data: Dataset) -> Dataset:
        """The rows that batches are made of."""
        return data

    def check(self) -> None:
        """Refuse what can be refused before anything runs, such as a missing package."""
        if self.settings is not None and self.settings.lora is not None:
            require_peft()

    # What it does

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """What the artifact depends on besides the inputs: plain values. Models count by their content."""
        named = {name: _each(value, partial(content_of, name)) for name, value in self._named().items()}
        return {"options": self.options.model_dump(mode="json", exclude_defaults=True) | named}

    def key(self, inputs: Inputs, context: Context) -> str:
        """The hash of everything that the artifact depends on: the same key is the same work.

        Options and settings at their defaults are left out, so that a new option leaves old keys valid; a change
        of a default must raise REVISION or ENGINE.
        """
        data = inputs.data
        trained = self.settings and self.settings.model_dump(mode="json", exclude=IDLE, exclude_defaults=True)
        return content_key(
            method=self.method,
            revision=self.REVISION,
            models=[model.fingerprint for model in inputs.models],
            data=data and [data.sha256, str(data.shape), dict(data.used)],
            settings=trained,
            engine=ENGINE if self.TOGETHER else None,
            machine=context.machine if self.TOGETHER else context.inference,
            seed=context.seed if self.SEEDED else None,
            **self.depends(inputs, context),
        )

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Produce the artifact in the folder `place`; returns what the record says about it.

        An encoder or a writer has its `fingerprint` in the record. Called again after a kill, it resumes.
        """
        raise NotImplementedError

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """What `run` would do and how long it would take, and an artifact of the same size for the stages after it."""
        raise NotImplementedError

    def open(self, place: Path, record: Mapping[str, Any], part: str) -> Dataset:
        """The rows of a dataset that it produced."""
        raise NotImplementedError

    def pooling_after(self, own: str | None) -> str | None:
        """Of a stage that produces an encoder: its pooling, if the encoder that it takes has this one."""
        return own

    def reused(self, place: Path) -> str:
        """What to tell the user if a finished artifact lacks something that this stage asks for."""
        return ""

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """The record in one line, for the log and the results."""
        raise NotImplementedError


class DataStage(Stage):
    """A stage that takes rows: from files, or from the dataset of an earlier stage."""

    data: Annotated[tuple[Text, ...], AfterValidator(at_least_one)]
    columns: Annotated[dict[str, Column], AfterValidator(_roles)] | None = None
    shape: Shape | None = None
    data_share: Annotated[float, Field(gt=0, le=1)] = 1.0  # by a hash of the first text: smaller shares nest in larger
    transductive: bool = False  # sentences of the evaluation sets may be in the data
    drop_leaks: bool = False  # rows with such sentences are left out

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        if self.columns and self.shape not in (None, stated := shape_of_roles(list(self.columns))):
            raise ValueError(f"the columns are those of {stated}, but the shape is {self.shape}")
        return self

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        return super().located(locate).model_copy(update={"data": tuple(map(locate, self.data))})

    @property
    def sources(self) -> tuple[str, ...]:
        """The files and stages that it reads rows from."""
        return self.data

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes that it takes."""
        return tuple(Shape)

    @property
    def takes_texts(self) -> bool:
        """Whether rows of different shapes may be flattened to their sentences."""
        return Shape.TEXTS in self.shapes

    def flattened(self, data: Dataset) -> Dataset:
        """The sentences of rows of any shape."""
        return texts_of(data)

    def fit(self, data: Dataset) -> Dataset:
        """The data in the shape that it takes."""
        return data

    def read(self, evaluated: Sequence[Dataset], opened: Opened | None = None) -> tuple[Dataset | None, int]:
        """Its rows in the shape that it takes, and how many sentences of the evaluation sets are among them."""
        data = self.fit(clean_data(self, evaluated, opened))
        return data, refuse_leaks(self, data, evaluated) if self.checked_for_leaks else 0

    @property
    def checked_for_leaks(self) -> bool:
        """Whether its own data is searched for sentences of the evaluation sets."""
        return True


class EncoderKeys(Strict):
    """How an encoder is loaded; None leaves the encoder's own."""

    pooling: PoolingName | None = None
    max_length: Annotated[int, Field(ge=1)] | None = None
