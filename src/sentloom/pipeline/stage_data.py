"""The data of a stage: read, joined, given views, and brought to a shape that the method takes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sentloom.corpus.opening import open_data
from sentloom.data.batches import text_keys
from sentloom.data.dataset import Dataset
from sentloom.data.joining import join
from sentloom.data.nli import triplets_from_nli
from sentloom.data.shapes import Shape, text_columns
from sentloom.errors import InputError
from sentloom.hygiene.leaks import find_leaks
from sentloom.methods import METHODS
from sentloom.pipeline.evaluation_sets import EvaluationSet
from sentloom.pipeline.makers import MAKERS
from sentloom.pipeline.plan import Making, Stage
from sentloom.pipeline.references import named_stage
from sentloom.views.pairs import make_pairs
from sentloom.views.sentences import distinct_sentences
from sentloom.views.settings import Entailment

Opened = Callable[[str], Dataset]  # what `stage:NAME` stands for
SLICES = 10_000  # rows fall into as many by the hash of their first text


def material(
    stage: Stage, evaluation_sets: Sequence[EvaluationSet], cache: Path, opened: Opened | None = None
) -> tuple[Dataset, int]:
    """What a stage trains on, and how many sentences of the judges stand in it, or in what its views are made of."""
    raw = clean_data(stage, evaluation_sets, opened)
    made = stage.views is not None and not isinstance(stage.views, Entailment)
    leaked = (
        refuse_leaks(stage, raw, evaluation_sets) if made else 0
    )  # first: views may take an hour, and hide their originals
    data = fitting(stage, raw, cache)
    return data, max(leaked, refuse_leaks(stage, data, evaluation_sets))


def making_material(
    stage: Making, evaluation_sets: Sequence[EvaluationSet], opened: Opened | None = None
) -> tuple[Dataset, int]:
    """What a making stage works on, and how many sentences of the judges stand in it."""
    raw = clean_data(stage, evaluation_sets, opened)
    data = texts_of(raw) if Shape.TEXTS in MAKERS[stage.method].SHAPES else raw
    return data, refuse_leaks(stage, data, evaluation_sets)


def clean_data(
    stage: Stage | Making, evaluation_sets: Sequence[EvaluationSet], opened: Opened | None = None
) -> Dataset:
    """A stage's files as one data set, without rows that leak if the stage says so."""
    data = read_data(stage, opened)
    return (
        without_leaks(data, [evaluation_set.data for evaluation_set in evaluation_sets]) if stage.drop_leaks else data
    )


def without_leaks(data: Dataset, scored: Sequence[Dataset]) -> Dataset:
    """The rows without any sentence that is scored on, those left out counted."""
    keep = np.ones(len(data), bool)
    if scored:
        keep[find_leaks(data, scored).training_rows] = False
    if keep.all():
        return data
    kept = data.select(keep)
    return replace(kept, skipped={**kept.skipped, "rows with sentences that are scored on": int((~keep).sum())})


def read_data(stage: Stage | Making, opened: Opened | None = None) -> Dataset:
    """A stage's files, or the wanted share of them, as one data set, before any view is made."""
    parts = [
        opened(name) if opened and named_stage(name) else open_data(name, shape=stage.shape, columns=stage.columns)
        for name in stage.data
    ]
    unequal = len({part.shape for part in parts}) > 1
    views = isinstance(stage, Stage) and stage.views is not None
    shapes = (METHODS[stage.method] if isinstance(stage, Stage) else MAKERS[stage.method]).SHAPES
    flat = unequal and (views or Shape.TEXTS in shapes)
    return share_of(join([texts_of(part) for part in parts] if flat else parts), stage.data_share)


def share_of(data: Dataset, share: float) -> Dataset:
    """A share of the rows, by a hash of their first text: rows of a smaller share are among those of a larger one."""
    if share == 1:
        return data
    first = data.column(text_columns(data.shape)[0])
    keys = np.concatenate([text_keys(chunk.to_pylist()) for chunk in first.chunks])
    keep = keys // SLICES % SLICES < round(share * SLICES)  # not the slices that premises are held out by
    if not keep.any():
        raise InputError(data.files[0], f"no row in a share of {share}", "some", "give more data or a larger share")
    return data.select(keep)


def fitting(stage: Stage, data: Dataset, cache: Path) -> Dataset:
    """The data as the method takes it: with views, as it is, or as the distinct sentences of all its columns."""
    shapes = METHODS[stage.method].SHAPES
    if stage.views is not None:
        refuse_useless_views(stage)
        return make_pairs(data, stage.views, cache=cache)
    if data.shape in shapes and data.shape is not Shape.TEXTS:
        return data
    if data.shape is Shape.NLI and Shape.TRIPLETS in shapes:
        return triplets_from_nli(data)
    if Shape.TEXTS in shapes:
        return texts_of(data)
    raise InputError(
        f"stage {stage.name}",
        f"data of the shape {data.shape}",
        f"{' or '.join(shapes)}, which {stage.method} learns from",
        "give such a file" + (", or let `views` make pairs" if Shape.PAIRS in shapes else ""),
    )


def refuse_useless_views(stage: Stage) -> None:
    """A method of single sentences would train on the originals and never look at their views."""
    if Shape.PAIRS not in METHODS[stage.method].SHAPES:
        found, wanted = f"views for {stage.method}", "none: it learns from single sentences"
        raise InputError(f"stage {stage.name}", found, wanted, "leave out views, or choose a method of pairs")


def texts_of(data: Dataset) -> Dataset:
    """Every distinct sentence of all text columns: a repeated one would stand among its own negatives."""
    return data.derive(distinct_sentences(data), "distinct sentences", Shape.TEXTS)


def refuse_leaks(stage: Stage | Making, data: Dataset, evaluation_sets: Sequence[EvaluationSet]) -> int:
    """How many sentences of the sets to be scored on stand in the training data; none may, unless the stage says so."""
    if not evaluation_sets:
        return 0
    leaks = find_leaks(data, [evaluation_set.data for evaluation_set in evaluation_sets])
    if leaks.leaked_sentences and not stage.transductive:
        one = leaks.kept[0]
        raise InputError(
            f"stage {stage.name}, {one.training}",
            f"{leaks.leaked_sentences:,} sentences that are scored on, such as {one.text!r} of {one.evaluation}",
            "training data without them",
            "say drop_leaks: true to leave those rows out, or transductive: true to train on them; reports tell it",
        )
    return leaks.leaked_sentences
