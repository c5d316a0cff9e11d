"""The public functions: each runs what a command runs, with the same options, and renders what it writes.

Data is a path, a hub name, `embedded`, or rows in memory (see `sentloom.read`). Recipes and plans name files, so rows
in memory are written once to `inputs/` in the output folder, under a hash of their content: the same call resumes.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from accelerate import Accelerator

from sentloom.corpus.opening import open_data
from sentloom.data.columns import only_column, text_column
from sentloom.data.dataset import Dataset
from sentloom.data.in_memory import Data, is_table
from sentloom.data.limits import FITTING, STRICT
from sentloom.data.sentences import distinct_sentences
from sentloom.data.shapes import Shape, as_columns, as_shape
from sentloom.data.writers import check_ending, write
from sentloom.encoder import Encoder
from sentloom.encoder.device import Precision, running_on
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import Evaluation, Models, open_memory
from sentloom.evaluation.evaluate import evaluate as score_models
from sentloom.evaluation.suites.user_tasks import QUESTION
from sentloom.files import new_folder
from sentloom.fitting.fit import run
from sentloom.fitting.request import DEFAULT_BASE, Log, Request, refuse_bad_request
from sentloom.fitting.result import FitResult, Measure
from sentloom.locks import alone_in, in_turn
from sentloom.pipeline import comparing, file_names, refuse_foreign, run_plans, start_accelerator
from sentloom.pipeline.builtin import find_recipe
from sentloom.pipeline.comparing import Compared
from sentloom.pipeline.input_files import InputFile, input_file, inputs_in, recipe_changes
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.results import Row
from sentloom.report import comparison_tables, plots, score_files, synthesis_plots
from sentloom.report.fit_report import write_report
from sentloom.report.model_card import facts_of, model_card
from sentloom.report.notebook import fit_html
from sentloom.search.mining import MineReport, MineSettings
from sentloom.search.mining import mine as find_negatives
from sentloom.writing.filters import chosen_filters
from sentloom.writing.ledger import Ledger
from sentloom.writing.options import checked
from sentloom.writing.sampling import Sampling
from sentloom.writing.summary import Summary
from sentloom.writing.synthesize import Engine, Execution
from sentloom.writing.synthesize import synthesize as write_sentences
from sentloom.writing.triplets import draw

Columns = Mapping[str, str | int] | str


def _silent(line: str) -> None:
    pass


@dataclass(frozen=True)
class Fit:
    """The result of `fit`. In a notebook it shows itself as a table."""

    verdict: str  # written, refused or forced
    reason: str
    scores: Mapping[str, Measure]  # by name
    model: Path | None  # None if the gate refused it
    report: Path
    result: FitResult = field(repr=False)

    @property
    def encoder(self) -> Encoder:
        """The encoder to use: the model that was written, or the base if none was better."""
        return Encoder.load(self.model or self.result.base)

    def _repr_html_(self) -> str:
        return fit_html(self.result, self.model, self.report)


def fit(
    data: Data | Sequence[Data],
    output: str | Path,
    *,
    base: str | Path = DEFAULT_BASE,
    budget: str = "10m",
    against: Data | Sequence[Data] = (),
    general: str | Path | None = None,
    synthesizer: str | Path | None = None,
    force: bool = False,
    seed: int = 1,
    shape: Shape | str | None = None,
    columns: Columns | None = None,
    strict: bool = False,
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
) -> Fit:
    """Fit a sentence encoder to data of any shape, and write it if it beats its base on held-out rows.

    `data` is a path, a name, or rows in memory; a list of Paths or tables is several inputs. A recipe (.yaml) races
    its own variants. A list of strings is a list of texts, unless every one of them is a file. `budget` is a time
    ("10m") or a number of steps ("400steps") for all routes together. `against` are sets or data that decide instead
    of held-out rows. `general` is a data folder with STS-B, on which general ability is watched. `force` writes the
    model even if it is not better. `shape` and `columns` ({"anchor": "title", "positive": "body"}) say what the rows
    are if their column names do not. Up to 5% of the rows (or ten) may be unusable and are left out; with `strict`, a
    single one is an error. `log` receives every message: pass `print` to see them. The same call resumes a fit that
    was stopped.

    >>> pairs = [(f"How much is ticket {n}?", f"Ticket {n} costs {3 * n} euros.") for n in range(120)]
    >>> done = fit(pairs, "tickets", budget="2steps", force=True)
    >>> done.verdict, done.model.name, done.encoder.similarity("ticket 7", "ticket 7") > 0.99
    ('forced', 'tickets', True)
    """
    base, shape, columns = _model_name(base), as_shape(shape), as_columns(columns)
    folder, allow = Request.folder_of(Path(output)), STRICT if strict else FITTING
    given = [input_file(one, folder, log, shape=shape, columns=columns, allow=allow) for one in inputs_in(data)]
    deciding = [input_file(one, folder, log, keep=(QUESTION,)) for one in inputs_in(against, scored=True)]
    in_memory = any(one.rows is not None for one in given)
    if in_memory and (shape or columns) and any(one.rows is None for one in given):
        fix = "read the files first: sentloom.read(path, columns=...)"
        raise InputError("fit", "`shape` or `columns` for files and rows in memory together", "", fix)
    request = Request(
        data=tuple(one.name for one in given),
        output=Path(output),
        base=base,
        budget=budget,
        against=tuple(one.name for one in deciding),
        general=Path(general) if general else None,
        force=force,
        synthesizer=str(synthesizer) if synthesizer else None,
        seed=seed,
        shape=None if in_memory else shape,
        columns=None if in_memory else columns,
        strict=strict,
        device=device,
        precision=precision,
    )
    refuse_bad_request(request)
    with alone_in(request.folder), running_on(device, precision):
        for one in (*given, *deciding):
            one.write()
        result, winner = run(request, log)
        return finish(request, result, winner)


def _model_name(base: object) -> str:
    if not isinstance(base, str | Path):
        problem = f"found a value of type {type(base).__name__}"
        fix = "to start from an Encoder in memory, first save it: encoder.save(folder)"
        raise InputError("base", problem, "the folder or the name of a model", fix)
    return str(base)


def finish(request: Request, result: FitResult, winner: Path) -> Fit:
    """Write the report, and the model unless it was refused."""
    report = write_report(result, request.folder)
    if result.verdict != "refused":
        with new_folder(request.output) as part:
            shutil.copytree(winner, part, dirs_exist_ok=True)
            (part / "README.md").write_text(model_card(result, facts_of(Encoder.load(str(winner)))), "utf-8")
    model = None if result.verdict == "refused" else request.output
    return Fit(result.verdict, result.reason, {one.name: one for one in result.measures}, model, report, result)


@dataclass(frozen=True)
class Trained:
    """The result of `train`: its scores, a row per variant, and the folder of its models."""

    title: str
    folder: Path
    rows: list[Row]

    @property
    def encoder(self) -> Encoder:
        """The model, if the recipe gives a single one; others are in `folder`, under models/VARIANT/seed-N."""
        if (self.folder / "model").exists():
            return Encoder.load(self.folder / "model")
        models = sorted(one for one in self.folder.glob("models/**/seed-*") if (one / "modules.json").is_file())
        if len(models) == 1:
            return Encoder.load(models[0])
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
    r"""Train what a recipe says: a YAML file, or the name of one that comes with sentloom.

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
            return Trained(opened.title, folder, run_plans(opened.plans, opened.files, folder, accelerator, log))


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


def _trackers(plans: Sequence[Plan]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for plan in plans for name in plan.trackers))


def compare(
    recipes: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    seeds: int = 3,
    variant: str | Sequence[str] = (),
    set: Mapping[str, Any] | Sequence[str] = (),  # noqa: A002
    on: Data | Sequence[Data] = (),
    data: str | Path | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    log: Log = _silent,
) -> Compared:
    r"""Train recipes and their variants with the same seeds and score them side by side.

    `on` are sets or data that all of them are scored on, instead of their own; `data` is the folder of the sets.
    compare.json, compare.md and compare.csv go to `output`. The same call resumes.

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
    folder, names = Path(output), _strings(recipes)
    if not names:
        raise InputError("recipes", "no recipe is given", "one or more", "name a file or a recipe of sentloom")
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

    `models` are names or Encoders, or a dict from labels to one of these or to a list of several seeds. `suite` names
    suites (sts, transfer, sentglue, multilingual, domain, afs), one of their sets (STS-B/dev) or a file
    (retrieval:FILE), or is data whose shape says what is scored: pairs are searched, scored pairs correlated, labelled
    texts classified.
    `data` is the folder of the suites; without it they come from the hub. `hidden` and `fast` concern the classifiers
    of transfer sets; `unchecked` also scores sets whose counts differ from the published ones. Vectors and scores are
    cached in `cache`, at most `cache_size` GB of them (0: nothing is). `output` are files for the scores: .json, .csv,
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
    anchor is at least `margin` below that of its positive. The search looks at `depth` candidates and skips the first
    `skip`. Returns the triplets and a report; `output` is a file for the triplets.

    >>> pairs = [(f"What does key {n} open?", f"Key {n} opens door {n}.") for n in range(20)]
    >>> triplets, report = mine(pairs, margin=0.0)
    >>> triplets.shape.value, report.rows
    ('triplets', 20)
    """
    settings = MineSettings(negatives, margin, skip, depth, search)
    if output is not None:
        check_ending(Path(output), Shape.TRIPLETS)  # before the work
    pairs = open_data(data, shape=as_shape(shape), columns=as_columns(columns))
    texts = None if corpus is None else distinct_sentences(open_data(corpus)).column("text").to_pylist()
    encoder = _encoder(model, pooling, device, precision)
    triplets, report = find_negatives(encoder, pairs, texts, settings, show_progress)
    if output is not None:
        write(triplets, Path(output), spreadsheet_safe)
    return triplets, report


def _encoder(
    model: str | Path | Encoder, pooling: str | None, device: str | None, precision: Precision | None
) -> Encoder:
    if isinstance(model, Encoder):
        return model
    return Encoder.load(model, pooling=pooling, device=device, precision=precision)


def synthesize(
    raw: Data | None,
    output: str | Path,
    *,
    synthesizer: str | Path | None = None,
    threshold: float | None = None,
    preset: str = "default",
    words: int | None = None,
    source_words: int | None = None,
    substring: bool | None = None,
    drop_equal: bool | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    temperature: float | None = None,
    greedy: bool = False,
    candidates: int | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    rows: int | None = None,
    backend: str | None = None,
    engine: Engine | None = None,
    workers: int | None = None,
    block: int | None = None,
    column: str | None = None,
    shape: Shape | str | None = None,
    columns: Columns | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    show_progress: bool = False,
) -> Summary:
    """Write an entailed and a contradicting sentence for each text, score them, and keep the good ones as triplets.

    `synthesizer` is the model that writes and scores: a folder or a hub name. All that it writes goes to the ledger
    in `output`, with triplets.parquet and pairs.parquet of what the filters keep: a `preset` (default, paper,
    official-code) with changes (`threshold`, `words`, `source_words`, `substring`, `drop_equal`). Without `raw`, an
    existing ledger is filtered again, and no model runs. The same call resumes.

    >>> synthesize(["A dog sleeps.", "It rains."], "ledger", synthesizer=small_t5, max_tokens=4).sources
    2
    >>> synthesize(None, "ledger", threshold=0.0, drop_equal=False).sources
    2
    """
    folder = Path(output)
    by = chosen_filters(
        preset, threshold=threshold, words=words, source_words=source_words, substring=substring, drop_equal=drop_equal
    )
    drawing = {"top_p": top_p, "top_k": top_k, "temperature": temperature, "greedy": greedy or None}
    drawing = _given({**drawing, "candidates": candidates, "max_tokens": max_tokens, "seed": seed})
    running = _given({"backend": backend, "engine": engine, "workers": workers, "block": block})
    if raw is None:
        _refuse_idle([*(["synthesizer"] if synthesizer else []), *drawing, *running])
        summary = draw(Ledger.open(folder), by, rows=rows, show_progress=show_progress)
    else:
        data = open_data(raw, shape=as_shape(shape), columns=as_columns(columns))
        name = text_column(data, column)
        texts = data if name == "text" else only_column(data, name)
        made = checked(Sampling, drawing)
        model = synthesizer or "embedded"
        how = checked(Execution, running)
        with running_on(device, precision):
            summary = write_sentences(texts, model, folder, made, by, how, rows=rows, show_progress=show_progress)
    plots.write(synthesis_plots.synthesis(summary), folder / "summary.png")
    return summary


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _refuse_idle(names: Sequence[str]) -> None:
    """Without raw text nothing is written: an option about writing is a misunderstanding."""
    if names:
        found = f"{', '.join(names).replace('_', '-')} without raw text to write for"
        raise InputError(
            "synthesize", found, "", "name the raw text too, or leave these out to filter the ledger again"
        )
