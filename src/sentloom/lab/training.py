"""The run of a recipe, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sentloom.api.common import silent, trackers_of, training_in
from sentloom.arguments import typed
from sentloom.encoder import Encoder
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.engine.plan import Plan, file_names
from sentloom.engine.rows import Changes, InputFile, recipe_changes
from sentloom.engine.runner import start_accelerator
from sentloom.errors import InputError
from sentloom.fitting.options import as_names
from sentloom.fitting.request import Log
from sentloom.lab.recipe import find_recipe, read_recipe
from sentloom.lab.results import Row, refuse_foreign, run_plans


@dataclass(frozen=True)
class Trained:
    r"""The result of `train`: its scores, a row per variant, and the folder of its models.

    >>> from pathlib import Path
    >>> _ = Path("untouched.yaml").write_text("base: embedded\nstages: []\n")
    >>> trained = train("untouched.yaml", "untouched")
    >>> trained.title, trained.folder.name, len(trained.rows)
    ('untouched', 'untouched', 1)
    """

    title: str
    folder: Path
    rows: list[Row]

    device: Device | None = field(default=None, repr=False)  # that it was asked to run on
    precision: str | None = field(default=None, repr=False)

    @cached_property
    def encoder(self) -> Encoder:
        """The model, if the recipe gives a single one; others are in `folder`, under models/VARIANT/seed-N."""
        with running_on(self.device, self.precision):
            return Encoder.load(self._model)

    @property
    def _model(self) -> Path:
        if (self.folder / "model").exists():
            return self.folder / "model"
        models = sorted(place for place in self.folder.glob("models/**/seed-*") if (place / "modules.json").is_file())
        if len(models) == 1:
            return models[0]
        if not models:
            fix = "use what its stages wrote, or add a stage that trains an encoder"
            raise InputError(str(self.folder), "the recipe has not trained an encoder", "", fix)
        names = ", ".join(model.relative_to(self.folder).as_posix() for model in models)
        fix = f'load the one to use: sentloom.Encoder.load("{models[0].as_posix()}")'
        raise InputError(str(self.folder), f"the recipe has trained several models: {names}", "", fix)


@typed
def train(
    recipe: str | Path,
    output: str | Path,
    *,
    variant: str | Sequence[str] = (),
    set: Changes = (),  # noqa: A002 - the command's name for it
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log = silent,
) -> Trained:
    r"""Run a recipe: a YAML file, or the name of one that comes with sentloom.

    `variant` chooses some of its variants, by default all. `set` changes values of the recipe, by dotted keys whose
    first part may be a stage: {"seeds": [1], "simcse.batch": 32, "simcse.data": ["A text.", "Another."]}. Models go to
    `output/model`, or to `output/models/VARIANT/seed-N`. The same call resumes.

    >>> from pathlib import Path
    >>> _ = Path("recipe.yaml").write_text(
    ...     "base: embedded\nstages: [{name: learn, method: simcse, data: none.txt, batch: 4, steps: 2}]\n"
    ... )
    >>> texts = [f"Sentence number {n}." for n in range(20)]
    >>> trained = train("recipe.yaml", "trained", set={"learn.data": texts})
    >>> trained.encoder.dimension
    384
    """
    folder = Path(output)
    opened = open_recipe(recipe, folder, variant, set)
    with running_on(device, precision):
        accelerator = start_accelerator(opened.trackers, folder)
        if accelerator.num_processes > 1 and accelerator.is_main_process:
            log(f"{accelerator.num_processes} processes train together on {accelerator.device.type}")
        with training_in(folder, accelerator, opened.inputs):
            log = log if accelerator.is_main_process else silent
            rows = run_plans(opened.plans, opened.files, folder, accelerator, log)
            return Trained(opened.title, folder, rows, device, precision)


@dataclass(frozen=True)
class OpenedRecipe:
    """The plans of a recipe's variants, the name that each has in the output folder, and rows to be written there."""

    title: str
    plans: list[Plan]
    files: list[str | None]
    inputs: list[InputFile]

    @property
    def trackers(self) -> tuple[str, ...]:
        """What the plans log to."""
        return trackers_of(self.plans)


def open_recipe(
    recipe: str | Path,
    output: Path,
    variant: str | Sequence[str],
    set: Changes,  # noqa: A002
) -> OpenedRecipe:
    """Read a recipe, with changes, and resolve the chosen variants, by default all; refuse to overwrite other files."""
    path = find_recipe(str(recipe))
    changes, inputs = recipe_changes(set, path, output)
    read = read_recipe(path, changes)
    names: list[str | None] = [*(as_names(variant) or read.variants)] or [None]
    known = file_names(list(read.variants))
    plans, files = [read.resolve(name) for name in names], [known[name] if name else None for name in names]
    for plan, file in zip(plans, files, strict=True):
        refuse_foreign(plan, output, file)
    return OpenedRecipe(plans[0].title or path.stem, plans, files, inputs)
