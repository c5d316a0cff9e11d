"""Before anything is trained: the data looked at and split, its training rows written, what is held out as tasks."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.data.dataset import Dataset
from sentloom.data.joining import join
from sentloom.data.limits import FITTING, STRICT
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.errors import InputError, MissingPart
from sentloom.evaluation.suites.catalog import find_task, load_suites
from sentloom.evaluation.suites.set_source import SetSource
from sentloom.evaluation.task import Task
from sentloom.files import new_file
from sentloom.fitting.general import general_task
from sentloom.fitting.inputs import Material, in_words, leaks_between, look, too_little
from sentloom.fitting.request import Request
from sentloom.fitting.routes import LENGTH, Resources, Route, SkippedRoute, TrainingSet, with_rows
from sentloom.fitting.split import Split, split_all
from sentloom.fitting.tasks import HeldOut, held_out, high_pairs, refuse_few, refuse_one_kind
from sentloom.hygiene.leaks import without_leaks
from sentloom.pipeline.artifacts import content_key
from sentloom.pipeline.evaluation_sets import sentences_of
from sentloom.pipeline.stages.train import stated_pooling
from sentloom.search.mining import MineSettings, mine
from sentloom.views.pairs import makers_for
from sentloom.views.settings import BackTranslation
from sentloom.writing.synthesize import synthesize
from sentloom.writing.text_to_text import TextToText

GENERAL_SET = "sts-b"  # of a data folder
MOST_SEARCHED = 200_000  # texts that are laid aside to search in
TIMED_VIEWS = 24
TIMED_PAIRS = 128
TIMED_TRIPLETS = 1024
TIMED_TEXTS = 32
FEWEST_LEARNT = 10  # rows of an input
FEWEST_NEGATIVES = 100  # pairs with one, for a route of their own
# What a shape is learnt from as; the others are learnt from as they are.
LEARNT_AS = {Shape.SCORED_PAIRS: Shape.PAIRS, Shape.CLASSIFICATION: Shape.TEXTS}


@dataclass(frozen=True)
class Prepared:
    """What a fit stands on."""

    materials: tuple[Material, ...]
    splits: tuple[Split, ...]
    trained: tuple[Dataset, ...]  # the training rows of each input, as they are learnt from
    bodies: tuple[TrainingSet, ...]
    choose: tuple[HeldOut, ...]
    prove: tuple[HeldOut, ...]
    against: tuple[Task, ...]
    general: Task  # what general ability is watched on

    @property
    def labelled(self) -> bool:
        """Whether any held-out rows have labels: then they decide, and raw text does not."""
        return any(part.labelled for part in self.prove)

    @property
    def label_free(self) -> bool:
        """Whether no labels decide, neither of held-out rows nor of sets that the user named."""
        return not (self.labelled or self.against)

    def deciding(self, parts: Sequence[HeldOut]) -> list[Task]:
        """The tasks of parts that decide."""
        return [task for part in parts if part.labelled or not self.labelled for task in part.tasks]


def prepare_inputs(request: Request, base: Encoder, log: Callable[[str], None]) -> Prepared:
    """Look, split, write the training rows, and make the tasks."""
    materials = look(request.data, request.shape, request.columns, STRICT if request.strict else FITTING)
    for material in materials:
        too_little(material)
        for line in in_words(material):
            log(line)
    suites = load_suites(request.against, SetSource(request.general))
    for one in suites:
        for name, why in one.missing.items():
            log(f"{one.name}: {name} is left out, {why}")
    against, general = tuple(task for one in suites for task in one.tasks), general_set(request)
    scored = [sentences_of(task) for task in against]
    for line in leaks_between(materials, [*scored, sentences_of(general)]):
        log(line)
    splits = split_all([_unseen(material, scored, request, log) for material in materials])
    trained = [learnt(material, split.train) for material, split in zip(materials, splits, strict=True)]
    bodies = write_bodies(materials, trained, min(LENGTH, base.tokens.max_length), request.folder / "data")
    write_corpus(materials, request.folder / "corpus.parquet")
    choose = _held_out(materials, [split.choose for split in splits], request)
    prove = _held_out(materials, [split.prove for split in splits], request)
    return Prepared(tuple(materials), tuple(splits), tuple(trained), bodies, choose, prove, against, general)


def general_set(request: Request) -> Task:
    """What general ability is watched on: a labelled set of the user's data folder, or the triplets that we wrote."""
    return find_task(GENERAL_SET, SetSource(request.general)) if request.general else general_task()


def _unseen(material: Material, scored: Sequence[Dataset], request: Request, log: Callable[[str], None]) -> Dataset:
    """The rows without sentences of sets that decide: those are neither learnt from nor chosen by."""
    rows = without_leaks(material.data, scored)
    if leaked := len(material.data) - len(rows):
        log(f"{material.name}: {leaked:,} rows with sentences of {', '.join(request.against)} are left out")
    return rows


def _held_out(materials: Sequence[Material], rows: Sequence[Dataset], request: Request) -> tuple[HeldOut, ...]:
    """What is held out of each input. Where some have labels, raw text has no say: its views take time, tell less."""
    labelled = any(material.data.shape is not Shape.TEXTS for material in materials)
    parts = []
    for material, data in zip(materials, rows, strict=True):
        if not labelled or material.data.shape is not Shape.TEXTS:
            refuse_one_kind(material.name, data)
            parts.append(
                held_out(material.name, data, material.language, request.folder / "views", request.synthesizer)
            )
            refuse_few(parts[-1])
    return tuple(parts)


def learnt(material: Material, rows: Dataset) -> Dataset:
    """The training rows in the form that they are learnt from; too few are refused."""
    form = learnt_form(rows)
    if len(form) < FEWEST_LEARNT:
        found = f"{len(form):,} rows to learn from" + (", those with a high score" if form.shape != rows.shape else "")
        raise InputError(material.name, found, f"at least {FEWEST_LEARNT}", "give more rows")
    return form


def learnt_form(data: Dataset) -> Dataset:
    """As methods take it: the high ones of scored pairs as pairs, the sentences of labelled texts as texts."""
    if data.shape is Shape.SCORED_PAIRS:
        return high_pairs(data)
    return texts_of(data) if data.shape in (Shape.CLASSIFICATION, Shape.TEXTS) else data


def write_bodies(
    materials: Sequence[Material], trained: Sequence[Dataset], length: int, folder: Path
) -> tuple[TrainingSet, ...]:
    """Write the training rows of each input; those of one shape are one body."""
    found: dict[Shape, TrainingSet] = {}
    for number, (material, data) in enumerate(zip(materials, trained, strict=True), 1):
        path = folder / f"{number}-{data.shape}.parquet"
        write(data, path)
        known = found.get(data.shape, TrainingSet(data.shape, 0, (), material.language))
        language = known.language if known.language == material.language else None
        files = (*known.files, str(path.resolve()))
        found[data.shape] = TrainingSet(data.shape, known.rows + len(data), files, language, length)
    return tuple(found.values())


def write_corpus(materials: Sequence[Material], path: Path) -> None:
    """What is searched in with the model: the texts that answer, which are the second ones of pairs."""
    texts: dict[str, None] = {}
    for material in materials:
        shape = material.data.shape
        column = COLUMNS[shape][1] if shape in (Shape.PAIRS, Shape.TRIPLETS) else COLUMNS[shape][0]
        texts.update(dict.fromkeys(material.data.column(column).slice(0, MOST_SEARCHED).to_pylist()))
    with new_file(path) as part:
        pq.write_table(pa.table({"text": list(texts)[:MOST_SEARCHED]}), part, write_page_checksum=True)


def find_resources(request: Request, prepared: Prepared, base: Encoder) -> Resources:
    """What is at hand beside the data."""
    try:
        makers_for(BackTranslation())
        translator = None
    except MissingPart as error:
        translator = f"it learns from back-translations, and the translator is missing: {error.problem}"
    pairs = [data.sha256 for data in prepared.trained if data.shape is Shape.PAIRS]
    mined = request.folder / "data" / f"mined-{content_key(pairs=pairs, base=base.fingerprint())}.parquet"
    return Resources(
        pooling=stated_pooling(request.base),
        dropout=base.backbone.dropout,
        translator=translator,
        synthesizer=request.synthesizer_place,
        mined=str(mined.resolve()),
    )


@contextmanager
def stand_in_triplets(routes: Sequence[Route], prepared: Prepared, mined: Path) -> Iterator[list[Route]]:
    """The routes to be timed: instead of mined triplets, which are not there yet, pairs with any other answer."""
    if not any(route.mined for route in routes):
        yield list(routes)
        return
    path = mined.with_name(f".timed-{mined.name}")
    pairs = join([data for data in prepared.trained if data.shape is Shape.PAIRS])
    some = pairs.take(range(min(len(pairs), TIMED_TRIPLETS)))
    negatives = [[text] for text in [*some["positive"][1:], some["positive"][0]]]
    with new_file(path) as part:
        pq.write_table(pa.table({"anchor": some["anchor"], "positive": some["positive"], "negatives": negatives}), part)
    try:
        yield [_reading(route, str(mined), str(path)) for route in routes]
    finally:
        path.unlink(missing_ok=True)


def _reading(route: Route, old: str, new: str) -> Route:
    """The route with one file in the place of another."""
    stages = tuple({**stage, "data": [new]} if stage["data"] == [old] else stage for stage in route.stages)
    return replace(route, stages=stages)


def with_negatives(
    routes: Sequence[Route], prepared: Prepared, base: Encoder, path: Path
) -> tuple[list[Route], list[SkippedRoute]]:
    """Make the triplets that routes with mined negatives learn from; such routes are closed if few are found."""
    wanted = max((route.mined for route in routes), default=0)
    found = mine_negatives(prepared, base, wanted, path) if wanted else 0
    if found >= FEWEST_NEGATIVES:
        return [with_rows(route, found) if route.mined else route for route in routes], []
    why = f"hard negatives are found for {found:,} pairs, and {FEWEST_NEGATIVES} are wanted"
    return [route for route in routes if not route.mined], [
        SkippedRoute(route.name, why) for route in routes if route.mined
    ]


def mine_negatives(prepared: Prepared, base: Encoder, rows: int, path: Path) -> int:
    """Triplets of so many pairs, evenly from all; how many there are in the end."""
    pairs = join([data for data in prepared.trained if data.shape is Shape.PAIRS])
    keep = np.zeros(len(pairs), bool)
    keep[np.linspace(0, len(pairs) - 1, rows).astype(np.int64)] = True
    try:
        triplets, _ = mine(base, pairs.select(keep), None, MineSettings())
    except InputError:  # none at all
        return 0
    write(triplets, path)
    return len(triplets)


def pairs_a_second(prepared: Prepared, base: Encoder) -> float:
    """How fast both sides of pairs are encoded, which is what the search for negatives costs."""
    pairs = [data for data in prepared.trained if data.shape is Shape.PAIRS]
    if not pairs:
        return 1.0
    some = [text for name in COLUMNS[Shape.PAIRS] for text in pairs[0].column(name).slice(0, TIMED_PAIRS).to_pylist()]
    start = time.perf_counter()
    base.encode(some)
    return len(some) / len(COLUMNS[Shape.PAIRS]) / (time.perf_counter() - start)


def views_a_second(prepared: Prepared, routes: Sequence[Route]) -> float:
    """How fast back-translations are made, measured on some sentences; 1 where no route wants any."""
    if not any(route.views for route in routes):
        return 1.0
    (maker,) = makers_for(BackTranslation())
    texts = [data for data in prepared.trained if data.shape is Shape.TEXTS]
    some = texts[0].column("text").slice(0, TIMED_VIEWS).to_pylist()
    start = time.perf_counter()
    made = sum(1 for _ in maker.views(some))
    return made / (time.perf_counter() - start)


def written_a_second(prepared: Prepared, synthesizer: str | None) -> float:
    """For how many sentences others are written and judged; 1 where there is no synthesizer."""
    texts = [data for data in prepared.trained if data.shape is Shape.TEXTS]
    if synthesizer is None or not texts:
        return 1.0
    model = TextToText.load(synthesizer).eval()  # its loading is not counted
    with TemporaryDirectory() as scratch:
        start = time.perf_counter()
        synthesize(texts[0], lambda: model, Path(scratch), rows=TIMED_TEXTS, show_progress=False)
        return TIMED_TEXTS / (time.perf_counter() - start)


def refuse_nothing(routes: Sequence[Route], closed: Sequence[SkippedRoute]) -> None:
    """There must be a way."""
    if not routes:
        why = "; ".join(f"{one.name}: {one.why}" for one in closed)
        raise InputError("data", f"no way to learn from it ({why})", "at least one", "add data of another shape")
