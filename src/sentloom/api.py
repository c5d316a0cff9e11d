"""The public functions: each runs what a command runs, with the same options, and renders what it writes.

Data is a path, a hub name, `embedded`, or rows in memory (see `sentloom.read`). Recipes and plans name files, so rows
in memory are written once to `inputs/` in the output folder, under a hash of their content: the same call resumes.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from accelerate import Accelerator

from sentloom.corpus.opening import open_data
from sentloom.data.columns import only_column
from sentloom.data.dataset import Dataset
from sentloom.data.in_memory import Data, is_table
from sentloom.data.limits import FITTING, STRICT
from sentloom.data.sentences import distinct_sentences
from sentloom.data.shapes import TITLE, Shape, as_columns, as_shape, one_label_each, text_columns
from sentloom.data.writers import check_ending, write
from sentloom.encoder import Encoder
from sentloom.encoder.device import Precision, running_on
from sentloom.encoder.golden import write_golden
from sentloom.errors import InputError, checked, option
from sentloom.evaluation.evaluate import Evaluation, Models, open_memory
from sentloom.evaluation.evaluate import evaluate as score_models
from sentloom.evaluation.suites.user_tasks import QUESTION
from sentloom.export.shrink import ShrinkRequest, Shrunk, refuse_bad_output
from sentloom.export.shrink import shrink as train_student
from sentloom.files import new_folder
from sentloom.fitting.clusters import ID_COLUMNS
from sentloom.fitting.compare_fits import FitComparison, compare_fits, is_fit
from sentloom.fitting.fit import run
from sentloom.fitting.inputs import LANGUAGE_COLUMNS
from sentloom.fitting.request import Log, Request, refuse_bad_request, with_defaults
from sentloom.fitting.result import FitResult, Measure
from sentloom.locks import alone_in, in_turn
from sentloom.pipeline import comparing, file_names, refuse_foreign, run_plans, start_accelerator
from sentloom.pipeline.builtin import find_recipe, find_tables
from sentloom.pipeline.comparing import Compared
from sentloom.pipeline.input_files import InputFile, input_file, inputs_in, labels_of, recipe_changes
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.reproducing import Reproduction, scored_in
from sentloom.pipeline.reproducing import reproduce as run_table
from sentloom.pipeline.results import Row
from sentloom.pipeline.tiny import tiny_recipe
from sentloom.report import comparison_tables, plots, reproduction_tables, score_files, synthesis_plots
from sentloom.report.fit_report import write_report
from sentloom.report.model_card import facts_of, model_card
from sentloom.report.notebook import fit_html
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.mining import MineReport, MineSettings
from sentloom.search.mining import mine as find_negatives
from sentloom.writing.ledger import Ledger
from sentloom.writing.options import Running, chosen_filters, chosen_kinds, parsed
from sentloom.writing.prompts import NLI_KINDS
from sentloom.writing.sampling import Sampling
from sentloom.writing.summary import Summary
from sentloom.writing.synthesize import WritingTask
from sentloom.writing.synthesize import synthesize as write_sentences
from sentloom.writing.triplets import draw

SEEDS = 3  # of `compare`
Scale = Literal["paper", "tiny"]
Columns = Mapping[str, Any] | str  # a name, a number from 1, or a list of label columns for each role


def _silent(line: str) -> None:
    pass


@dataclass(frozen=True)
class Fit:
    """The result of `fit`. In a notebook it shows itself as a table.

    >>> pairs = [(f"How much is ticket {n}?", f"Ticket {n} costs {3 * n} euros.") for n in range(120)]
    >>> done = fit(pairs, "tickets", budget="10steps", force=True)
    >>> done.verdict, list(done.scores), done.report.name
    ('no difference shown', ['the list', 'general triplets'], 'report.html')
    """

    verdict: str  # "better", "no difference shown" or "worse" than the base
    reason: str
    scores: Mapping[str, Measure]  # by name
    model: Path | None  # None if it is not better, unless `force` was given
    report: Path
    result: FitResult = field(repr=False)
    device: str | None = field(default=None, repr=False)  # that the fit was asked to run on
    precision: str | None = field(default=None, repr=False)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder to use: the model that was written, or the base if none was better. It is loaded once."""
        with running_on(self.device, self.precision):
            return Encoder.load(self.model or self.result.base)

    def _repr_html_(self) -> str:
        return fit_html(self.result, self.model, self.report)


def fit(
    data: Data | Sequence[Data],
    output: str | Path,
    *,
    base: str | Path | Sequence[str | Path] | None = None,
    budget: str | None = None,
    against: Data | Sequence[Data] = (),
    general: str | Path | None = None,
    group: str | Sequence[str] = (),
    corpus: Data | Sequence[Data] = (),
    dimensions: Sequence[int] | None = None,
    writer: str | Path | None = None,
    writer_model: str | None = None,
    max_tokens: int | None = None,
    guide: str | Path | None = None,
    teacher: str | Path | None = None,
    force: bool = False,
    seed: int | None = None,
    shape: Shape | str | None = None,
    columns: Columns | None = None,
    strict: bool = False,
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
) -> Fit:
    """Fit a sentence encoder to data of any shape, and write it if it beats its base on held-out rows.

    `data` is a path, a name, or rows in memory; a list of Paths or tables is several inputs. A recipe (.yaml) races its
    own variants, and sets the base, the seed and the lengths itself. A list of strings is a list of texts, unless every
    one of them is a file. `base` is "embedded" by default; several race, and the winner has to beat the best of them.
    `budget` is a time ("10m", the default) or a number of steps ("400steps") for all routes together. `against` are
    sets or data that decide instead of held-out rows. `general` is a data folder with STS-B, on which general ability
    is watched. `group` names columns whose values connect rows (a customer, a thread), which are then not divided
    between training and test rows, unless that would put more than 5% of the rows into one cluster. `corpus` are more
    texts to search among. With `dimensions` ([384, 256, 128, 64]), vectors may be cut to their first dimensions.
    `writer` is a language model that writes queries and sentences to learn from: a folder, a hub name, "embedded" (the
    default from 5 minutes on, if it is installed), "none", or the address of an OpenAI-compatible endpoint with its
    `writer_model` and at most `max_tokens` tokens. `guide` is an encoder that says which negatives may be false, by
    default the base. `teacher` is a cross-encoder to learn from, if it ranks the validation rows better than
    the base. `force` writes the model even if it is not better. `shape` and `columns` ({"anchor": "title", "positive":
    "body"}) say what the rows are if their column names do not; several label columns are a list ({"text": "message",
    "label": ["intent", "team"]}). Up to 5% of the rows (or ten) may be unusable and are left out; with `strict`, a
    single one is an error. `log` receives every message: pass `print` to see them. The same call resumes a fit that was
    stopped.

    >>> pairs = [(f"How much is ticket {n}?", f"Ticket {n} costs {3 * n} euros.") for n in range(120)]
    >>> done = fit(pairs, "tickets", budget="2steps", force=True)
    >>> done.verdict, done.model.name, done.encoder.similarity("ticket 7", "ticket 7") > 0.99
    ('no difference shown', 'tickets', True)
    """
    shape, columns = as_shape(shape), as_columns(columns)
    folder, allow = Request.folder_of(Path(output)), STRICT if strict else FITTING
    keep = (TITLE, *ID_COLUMNS, *LANGUAGE_COLUMNS, *_strings(group))
    reading = {"shape": shape, "allow": allow, "keep": keep}
    given = [one for each in inputs_in(data) for one in _by_label(each, folder, log, columns, reading)]
    deciding = [input_file(one, folder, log, keep=(QUESTION,)) for one in inputs_in(against, scored=True)]
    searched = [input_file(one, folder, log) for one in inputs_in(corpus)]
    in_memory = any(one.rows is not None for one in given)
    if shape or columns:
        _refuse_mixed(given)
    names = tuple(one.name for one in given)
    own = {"bases": _model_names(base), "budget": budget, "seed": seed, "dimensions": dimensions}
    read_as = {
        "writer": writer,
        "writer_model": writer_model,
        "max_tokens": max_tokens,
        "guide": guide,
        "teacher": teacher,
        "shape": shape,
        "columns": columns,
    }
    request = Request(
        data=names,
        output=Path(output),
        **with_defaults(names, own | read_as),
        against=tuple(one.name for one in deciding),
        general=Path(general) if general else None,
        group=tuple(_strings(group)),
        corpus=tuple(one.name for one in searched),
        dimensions=tuple(dimensions or ()),
        force=force,
        writer=str(writer) if writer else None,
        writer_model=writer_model,
        max_tokens=max_tokens,
        guide=str(guide) if guide else None,
        teacher=str(teacher) if teacher else None,
        shape=None if in_memory else shape,
        columns=None if in_memory else columns,
        strict=strict,
        device=device,
        precision=precision,
        label_columns={one.name: one.label_column for one in given if one.label_column},
        labels=labels_of([*given, *deciding]),
    )
    refuse_bad_request(request)
    with alone_in(request.folder), running_on(device, precision):
        for one in (*given, *deciding, *searched):
            one.write()
        result, winner = run(request, log)
        return finish(request, result, winner)


def _refuse_mixed(given: Sequence[InputFile]) -> None:
    """Shape and columns describe either files, which are read later, or rows in memory, which have been read."""
    if len({one.rows is None for one in given}) > 1:
        fix = "read the files first: sentloom.read(path, columns=...)"
        raise InputError("fit", "`shape` and `columns` cannot be given for files and rows in memory together", "", fix)


def _by_label(
    data: Data, folder: Path, log: Log, columns: Mapping[str, str | int] | None, reading: Mapping[str, Any]
) -> list[InputFile]:
    """Rows in memory once for each of several label columns; a file as it is."""
    several = one_label_each(columns)
    if isinstance(data, str | Path) or len(several) == 1:
        return [input_file(data, folder, log, columns=columns, **reading)]
    return [
        input_file(data, folder, log, columns=one, label_column=str(one["label"]), **reading) for one in several if one
    ]


def _model_names(base: object) -> tuple[str, ...] | None:
    if base is None:
        return None
    given = list(base) if isinstance(base, list | tuple) else [base]
    if wrong := [one for one in given if not isinstance(one, str | Path)]:
        problem = f"found a value of type {type(wrong[0]).__name__}"
        fix = "to start from an Encoder in memory, first save it: encoder.save(folder)"
        raise InputError("base", problem, "the folder or the name of a model", fix)
    if not given:
        raise InputError("base", "the list is empty", "one model or more", "name one, or leave the option out")
    return tuple(map(str, given))


def finish(request: Request, result: FitResult, winner: Path) -> Fit:
    """Write the report, and the model unless it was refused."""
    report = write_report(result, request.folder)
    if result.model:
        with new_folder(request.output) as part:
            encoder = Encoder.load(winner)
            shutil.copytree(winner, part, dirs_exist_ok=True)
            write_golden(encoder, part)
            (part / "README.md").write_text(model_card(result, facts_of(encoder)), "utf-8")
    model = request.output if result.model else None
    scores = {one.name: one for one in result.measures}
    return Fit(result.verdict, result.reason, scores, model, report, result, request.device, request.precision)


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

    device: str | None = field(default=None, repr=False)  # that it was asked to run on
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
        models = sorted(one for one in self.folder.glob("models/**/seed-*") if (one / "modules.json").is_file())
        if len(models) == 1:
            return models[0]
        if not models:
            fix = "use what its stages wrote, or add a stage that trains an encoder"
            raise InputError(str(self.folder), "the recipe has not trained an encoder", "", fix)
        names = ", ".join(one.relative_to(self.folder).as_posix() for one in models)
        fix = f'load the one to use: sentloom.Encoder.load("{models[0].as_posix()}")'
        raise InputError(str(self.folder), f"the recipe has trained several models: {names}", "", fix)


def train(
    recipe: str | Path,
    output: str | Path,
    *,
    variant: str | Sequence[str] = (),
    set: Mapping[str, Any] | Sequence[str] = (),  # noqa: A002 - the command's name for it
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
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
        with _training_in(folder, accelerator, opened.inputs):
            log = log if accelerator.is_main_process else _silent
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
        return _trackers(self.plans)


def open_recipe(
    recipe: str | Path,
    output: Path,
    variant: str | Sequence[str],
    set: Mapping[str, Any] | Sequence[str],  # noqa: A002
) -> OpenedRecipe:
    """Read a recipe, with changes, and resolve the chosen variants, by default all; refuse to overwrite other files."""
    path = find_recipe(str(recipe))
    changes, inputs = recipe_changes(set, path, output)
    read = read_recipe(path, changes)
    names: list[str | None] = [*(_strings(variant) or read.variants)] or [None]
    known = file_names(list(read.variants))
    plans, files = [read.resolve(name) for name in names], [known[name] if name else None for name in names]
    for plan, file in zip(plans, files, strict=True):
        refuse_foreign(plan, output, file)
    return OpenedRecipe(plans[0].title or path.stem, plans, files, inputs)


def reproduce(
    tables: str | Sequence[str],
    output: str | Path | None = None,
    *,
    scale: Scale = "paper",
    row: str | Sequence[str] = (),
    data: str | Path | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
) -> dict[str, Reproduction]:
    """Run the rows of a paper's table (`bsl/table-1`), or of all tables of a paper (`bsl`), beside published scores.

    A row whose models or data are not here does not run; the result says what it lacks. `row` chooses some rows.
    With the scale tiny, the same rows run on small models and a few sentences, from the folder `data` as far as it has
    them. Models, table.md and table.json go to `output/PAPER/TABLE`. The same call resumes.

    >>> tables = reproduce("self-guided/figure-1", "tables", scale="tiny", row="max, layer 2")
    >>> tables["self-guided/figure-1"].rows["max, layer 2"].published
    {'STS-B': 63.19}
    """
    folder, tiny = Path(output or f"reproduced/{scale}"), scale == "tiny"
    given = Path(data) if data else None
    found = {}
    with running_on(device, precision):
        accelerator = start_accelerator((), folder)
        said = log if accelerator.is_main_process else _silent
        for name, path in find_tables(_strings(tables)).items():
            place = folder / name
            with _training_in(place, accelerator, ()):
                reproduction_tables.refuse_foreign_tables(place)
                recipe = tiny_recipe(path, folder / "tiny", given) if tiny else scored_in(read_recipe(path), given)
                found[name] = run_table(recipe, place, accelerator, said, only=_strings(row), tiny=tiny)
                if accelerator.is_main_process:
                    reproduction_tables.write_reproduction(found[name], place)
    return found


def _trackers(plans: Sequence[Plan]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for plan in plans for name in plan.trackers))


def compare(
    recipes: str | Path | Sequence[str | Path],
    output: str | Path | None = None,
    *,
    seeds: int = SEEDS,
    variant: str | Sequence[str] = (),
    set: Mapping[str, Any] | Sequence[str] = (),  # noqa: A002
    on: Data | Sequence[Data] = (),
    data: str | Path | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
) -> Compared | FitComparison:
    r"""Train recipes and their variants with the same seeds and score them side by side.

    `on` are sets or data that all of them are scored on, instead of their own; `data` is the folder of the sets.
    compare.json, compare.md and compare.csv go to `output`. The same call resumes.

    Two fits (["old.fit", "new.fit"]) are compared on test rows that neither has seen; that trains nothing and needs no
    output. With one, compare.json and compare.md are written.

    >>> from pathlib import Path
    >>> _ = Path("r.yaml").write_text(
    ...     "base: embedded\nstages: [{name: learn, method: simcse, data: none.txt, batch: 4, steps: 2}]\n"
    ... )
    >>> import sentloom
    >>> texts = {"learn.data": [f"Sentence number {n}." for n in range(20)]}
    >>> faq = sentloom.read([("Where is the canteen?", "On the ground floor."), ("Is it open?", "From noon on.")])
    >>> found = compare("r.yaml", "compared", seeds=1, set=texts, on=faq)
    >>> len(found.rows), Path("compared/compare.md").exists()
    (1, True)
    """
    names = _strings(recipes)
    if not names:
        raise InputError("recipes", "no recipe is given", "one or more", "name a file or a recipe of sentloom")
    if any(map(is_fit, names)):
        training = {"seeds": seeds != SEEDS, "variant": variant, "set": set, "on": on, "data": data}
        _refuse_for_fits([name for name, given in training.items() if not _is_empty(given)])
        with running_on(device, precision):
            return _compare_fits(names, output)
    if output is None:
        raise InputError(
            "compare",
            "there is no output folder",
            "a folder for models and tables",
            f"name one: {option('output', 'DIR')}",
        )
    folder = Path(output)
    changes, saved = recipe_changes(set, find_recipe(names[0]), folder)
    scored = [input_file(one, folder, log, keep=(QUESTION,)) for one in inputs_in(on, scored=True)]
    for one in scored:
        one.write()
    plans = comparing.read_methods(
        names,
        seeds=seeds,
        variants=_strings(variant),
        changes=changes,
        on=[one.name for one in scored],
        data=Path(data) if data else None,
    )
    with running_on(device, precision):
        accelerator = start_accelerator(_trackers(plans), folder)
        with _training_in(folder, accelerator, saved):
            comparison_tables.refuse_foreign_tables(folder)
            return comparing.compare(
                plans,
                folder,
                accelerator,
                log if accelerator.is_main_process else _silent,
                lambda some: comparison_tables.write_comparison(some, folder),
            )


def _is_empty(given: Any) -> bool:
    """Whether an option was left out; data in memory has no truth value."""
    return given is None or given is False or (isinstance(given, str | Sequence | Mapping) and not given)


def _refuse_for_fits(names: Sequence[str]) -> None:
    """Refuse options about training if two fits are compared, which trains nothing."""
    if names:
        given = " and ".join(map(option, names))
        problem = f"{given} cannot be used with fits, which are compared on their own test rows"
        raise InputError("compare", problem, "", "leave these out, or compare recipes")


def _compare_fits(names: Sequence[str], output: str | Path | None) -> FitComparison:
    """Compare two fits; refuse anything else beside them."""
    if not all(map(is_fit, names)) or len(names) != 2:
        problem = f"{len(names)} names are given, of which {sum(map(is_fit, names))} are fits"
        raise InputError("compare", problem, "two fits, or recipes only", "write OLD.fit NEW.fit")
    found = compare_fits(*map(Path, names))
    if output is not None:
        comparison_tables.refuse_foreign_tables(Path(output))
        comparison_tables.write_fits(found, Path(output))
    return found


@contextmanager
def _training_in(folder: Path, accelerator: Accelerator, inputs: Sequence[InputFile]) -> Iterator[None]:
    """Hold a folder while something trains in it, and write the rows that were passed in memory."""
    try:
        with alone_in(folder) if accelerator.is_main_process else nullcontext():
            for one in inputs if accelerator.is_main_process else ():
                one.write()
            accelerator.wait_for_everyone()
            yield
    finally:
        accelerator.end_training()


def _strings(given: str | Path | Sequence[str | Path]) -> list[str]:
    return [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]


def evaluate(
    models: Models,
    suite: str | Data | Sequence[str | Data] = "sts",
    *,
    data: str | Path | None = None,
    aggregation: str = "all",
    fast: bool = False,
    hidden: int = 0,
    unchecked: bool = False,
    pooling: str | None = None,
    cache: str | Path | None = None,
    cache_size: float = 2.0,
    output: str | Path | Sequence[str | Path] = (),
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
    show_progress: bool = False,
) -> Evaluation:
    """Score models side by side on suites, or on data of your own, with confidence intervals.

    `models` are names or Encoders, or a dict of labels with one or a list of them (seeds of one model). `suite` names
    suites (sts, transfer, sentglue, multilingual, domain, afs), one of their sets (STS-B/dev) or a file
    (retrieval:FILE), or is data whose shape says what is scored: pairs are searched, scored pairs correlated, labelled
    texts classified.
    `data` is the folder of the suites; without it they come from the hub. `hidden` and `fast` concern the classifiers
    of transfer sets; `unchecked` also scores sets whose counts differ from the published ones. Vectors and scores are
    cached in `cache`, up to `cache_size` GB (0 turns caching off). `output` are files for the scores: .json, .csv,
    .md or .png.

    >>> faq = [("Where is the canteen?", "On the ground floor."), ("Is it open?", "Open from noon until two.")]
    >>> evaluate("embedded", faq).scores["embedded"]
    {'the list': 100.0}
    """
    targets = [Path(one) for one in _strings(output)]
    for target in targets:
        score_files.check_scores_file(target)
    with running_on(device, precision):
        found = score_models(
            models,
            _suites(suite),
            data=data,
            pooling=pooling,
            aggregation=aggregation,
            fast=fast,
            hidden=hidden,
            checked=not unchecked,
            memory=open_memory(Path(cache) if cache else None, cache_size * 1e9) if cache_size else None,
            log=log,
            show_progress=show_progress,
        )
    with ExitStack() as turns:  # two processes must not mix their files
        for target in sorted({*targets}):
            turns.enter_context(in_turn(target, log))
        for target in targets:
            score_files.write_scores(target, found.models, found.suites)
    return found


def _suites(suite: Any) -> list[Any]:
    """Names and data; a list of tuples or dicts is one set of data."""
    if not isinstance(suite, list | tuple):
        return [suite]
    return [*suite] if any(isinstance(one, str | Path) or is_table(one) for one in suite) else [suite]


def mine(
    data: Data,
    output: str | Path | None = None,
    *,
    model: str | Path | Encoder = "embedded",
    corpus: Data | None = None,
    negatives: int = 1,
    margin: float = 0.05,
    at_most: float | None = None,
    guide: str | Path | Encoder | None = None,
    teacher: str | Path | CrossEncoder | None = None,
    teacher_margin: float = 1.0,
    skip: int = 0,
    depth: int = 50,
    search: Literal["exact", "faiss"] = "exact",
    pooling: str | None = None,
    shape: Shape | str | None = None,
    columns: Columns | None = None,
    spreadsheet_safe: bool = False,
    device: str | None = None,
    precision: Precision | None = None,
    show_progress: bool = False,
) -> tuple[Dataset, MineReport]:
    """Find hard negatives for pairs: texts that rank close to the anchor but are not known to be right.

    Each pair gets up to `negatives` texts from `corpus` (by default the positives of the pairs) whose cosine with the
    anchor is at least `margin` below its positive's, and at most the share `at_most` of it; with a `guide`, a
    second model, by its cosines too. With a `teacher`, a cross-encoder, a negative's score must also be at least
    `teacher_margin` below the positive's. The search looks at `depth` candidates and skips the first `skip`. Returns
    the triplets and a report; `output` is a file for the triplets.

    >>> pairs = [(f"What does key {n} open?", f"Key {n} opens door {n}.") for n in range(20)]
    >>> triplets, report = mine(pairs, margin=0.0)
    >>> triplets.shape.value, report.rows
    ('triplets', 20)
    """
    limits = {"negatives": negatives, "margin": margin, "skip": skip, "depth": depth, "at_most": at_most}
    settings = checked(MineSettings, "mine", {**limits, "search": search, "teacher_margin": teacher_margin})
    if output is not None:
        check_ending(Path(output), Shape.TRIPLETS)  # before the work
    pairs = open_data(data, shape=as_shape(shape), columns=as_columns(columns))
    texts = None if corpus is None else distinct_sentences(open_data(corpus)).column("text").to_pylist()
    encoder = _encoder(model, pooling, device, precision)
    guiding = None if guide is None else _encoder(guide, None, device, precision)
    with running_on(device, precision):
        judge = CrossEncoder.load(teacher) if isinstance(teacher, str | Path) else teacher
    triplets, report = find_negatives(encoder, pairs, texts, settings, show_progress, guiding, judge)
    if output is not None:
        write(triplets, Path(output), spreadsheet_safe)
    return triplets, report


def _encoder(
    model: str | Path | Encoder, pooling: str | None, device: str | None, precision: Precision | None
) -> Encoder:
    if isinstance(model, Encoder):
        if pooling or device or precision:
            problem = "pooling, device and precision cannot be changed for an Encoder in memory"
            raise InputError("model", problem, "", "give them to Encoder.load, or name the model's folder here")
        return model
    return Encoder.load(model, pooling=pooling, device=device, precision=precision)


def shrink(
    model: str | Path,
    output: str | Path,
    texts: Data = "embedded",
    *,
    layers: int | None = None,
    student: str | Path | None = None,
    against: str | Sequence[str] = (),
    data: str | Path | None = None,
    epochs: float = 1.0,
    steps: int | None = None,
    pooling: str | None = None,
    shape: Shape | str | None = None,
    columns: Columns | None = None,
    seed: int = 1,
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
) -> Shrunk:
    """Train a smaller student that mimics an encoder on raw text, and measure what that costs in score.

    The student starts from `layers` of the model's own layers, evenly spaced, by default half of them; a decoder is
    dropped, and a decoder-first model gets a student with mean pooling. With `student`, another model is trained
    instead, with a projection if its vectors have other dimensions. `texts` are of any kind, by default the
    docstrings of installed packages. Both are scored on `against`, sets (from the folder `data`) or files, whose
    sentences are left out of the training; without any, on how they rank pairs of held-out texts. `pooling` is the
    model's, if it states none. The same call resumes.

    >>> texts = [f"Ticket {n} costs {3 * n} euros and is valid on day {n % 7}." for n in range(500)]
    >>> done = shrink("embedded", "small", texts, layers=1, steps=2)
    >>> done.encoder.backbone.num_layers, done.total.name, done.total.before
    (1, 'agreement with the teacher', 100.0)
    """
    request = ShrinkRequest(
        str(model), Path(output), layers, str(student) if student else None, pooling, epochs, steps, seed
    )
    refuse_bad_output(request)
    given = open_data(texts, shape=as_shape(shape), columns=as_columns(columns))
    with running_on(device, precision):
        accelerator = start_accelerator((), request.folder)
        with _training_in(request.folder, accelerator, ()):
            said = log if accelerator.is_main_process else _silent
            return train_student(request, given, _strings(against), Path(data) if data else None, accelerator, said)


def synthesize(
    raw: Data | None,
    output: str | Path,
    *,
    kind: str | Sequence[str] | None = None,
    writer: str | Path | None = None,
    writer_model: str | None = None,
    max_tokens: int | None = None,
    shots: Data | None = None,
    filters: str | Mapping[str, Any] | None = None,
    sampling: str | Mapping[str, Any] | None = None,
    execution: str | Mapping[str, Any] | None = None,
    columns: Columns | None = None,
    log: Log = _silent,
    show_progress: bool = False,
) -> Summary:
    """Write sentences or queries for each text, score them, and keep the good ones as triplets and pairs.

    `kind` is entailment, contradiction, query or paraphrase, or several; by default the first two, which give triplets.
    `writer` is the model: embedded, a folder, a hub name, or the address of an OpenAI-compatible endpoint with its
    `writer_model` and at most `max_tokens` tokens. Everything it writes goes to the ledger in `output`, with
    triplets.parquet and pairs.parquet of what passes the `filters`, a preset (default, paper, official-code) or values
    (threshold, round_trip, drop_vague, cross_encoder, copied, near_duplicates, language, finished, source_words, words,
    most_words, substring, drop_equal). `shots` are a few pairs or triplets of your own that show what to write.
    `sampling` has top_p, top_k, temperature, greedy, candidates, length and seed; `execution` has rows (the first rows
    only), backend (transformers, ctranslate2, ctranslate2-int8), encoder, teacher (a cross-encoder that scores
    queries), engine (local, ray), workers, requests, price_read and price_written (of a million tokens of an
    endpoint), block, device and precision. These are mappings, or texts as the command takes them: "top_p=0.9,seed=2".
    If `raw` has several text columns, choose one: columns={"text": "body"}. Without `raw`, an existing ledger is
    filtered again, and no model runs. The same call resumes.

    >>> synthesize(["A dog sleeps.", "It rains."], "ledger", writer=small_t5, sampling={"length": 4}).sources
    2
    >>> synthesize(None, "ledger", filters="threshold=0,drop_equal=false").sources
    2
    """
    folder, by = Path(output), chosen_filters(filters)
    if raw is None:
        writing: dict[str, Any] = {"kind": kind, "writer": writer, "writer_model": writer_model, "shots": shots}
        writing |= {"max_tokens": max_tokens, "sampling": sampling, "execution": execution, "columns": columns}
        _refuse_idle([name for name, value in writing.items() if value is not None])
        summary = draw(Ledger.open(folder), by, show_progress=show_progress)
    else:
        texts = _raw_texts(open_data(raw, columns=as_columns(columns)))
        how = checked(Sampling, "sampling", parsed("sampling", sampling))
        runs = checked(Running, "execution", parsed("execution", execution))
        shown = None if shots is None else open_data(shots)
        task = WritingTask(chosen_kinds(kind or NLI_KINDS), shown, writer_model, max_tokens)
        with running_on(runs.device, runs.precision):
            summary = write_sentences(
                texts, writer or "embedded", folder, how, by, runs,
                task=task, rows=runs.rows, show_progress=show_progress, log=log,
            )  # fmt: skip
    plots.write(synthesis_plots.synthesis(summary), folder / "summary.png")
    return summary


def _raw_texts(data: Dataset) -> Dataset:
    """The only text column of the data."""
    first, *others = text_columns(data.shape)
    if others:
        named = [data.used.get(name, name) for name in (first, *others)]
        problem, fix = (
            f"it has several text columns: {', '.join(named)}",
            f"choose one: {option('columns', f'text={named[0]}')}",
        )
        raise InputError(data.files[0], problem, "one", fix)
    return data if first == "text" else only_column(data, first)


def _refuse_idle(names: Sequence[str]) -> None:
    """Refuse options about writing if there is no raw text to write for."""
    if names:
        problem = f"{' and '.join(names)} cannot be used without raw text to write for"
        fix = "name the raw text too, or leave these out to filter the ledger again"
        raise InputError("synthesize", problem, "", fix)
