"""Natural language inference: the names of its labels, and triplets or pairs made from labelled pairs."""

from dataclasses import replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.dataset import BATCH_ROWS, Dataset, keep_rows, scratch_table, take_rows
from sentloom.data.shapes import COLUMNS, Shape, arrow_type, squash
from sentloom.errors import InputError

ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
NOT_ENTAILMENT = "not_entailment"  # in two-way sets (RTE, QNLI): neutral or contradiction, without distinction
WORDS = {
    **dict.fromkeys(("entailment", "entails", "entail"), ENTAILMENT),
    "neutral": NEUTRAL,
    **dict.fromkeys(("contradiction", "contradicts", "contradictory"), CONTRADICTION),
    **dict.fromkeys(("notentailment", "nonentailment"), NOT_ENTAILMENT),
}
NUMBERS = {"0": ENTAILMENT, "1": NEUTRAL, "2": CONTRADICTION}  # as in SNLI and MNLI on the hub
NO_GOLD = ("-", "-1")  # the annotators did not agree

Rows = npt.NDArray[np.int64]


def is_nli_word(cell: object) -> bool:
    """Whether a label is an NLI word; numbers are not, because they may just as well be scores."""
    return isinstance(cell, str) and (cell.strip() == "-" or squash(cell) in WORDS)


def nli_label(cell: object) -> str | None:
    """Return the canonical word for a label or for 0, 1, 2; None for "no gold label"; raise KeyError otherwise."""
    text = str(cell).strip()
    if text in NO_GOLD:
        return None
    return WORDS.get(text) or NUMBERS.get(text) or WORDS[squash(text)]


def triplets_from_nli(dataset: Dataset, batch_rows: int = BATCH_ROWS) -> Dataset:
    """Make triplets (premise, entailed hypothesis, contradicted hypothesis).

    Premises come in the order of their first appearance. For each, the k-th entailment in file order is combined with
    the k-th contradiction, and the shorter of the two lists determines the number of triplets. Two premises are the
    same if their texts are equal. A triplet's origin and its columns kept on request are those of its entailment.
    """
    if dataset.shape is not Shape.NLI:
        raise InputError(dataset.files[0], f"its shape is {dataset.shape}", "the shape nli", "give labelled NLI pairs")
    entailed, contradicted = _matched(dataset)
    if not len(entailed):
        problem = "no premise has both an entailment and a contradiction"
        fix = "add contradictions, or use only the entailments, as pairs"
        raise InputError(dataset.files[0], problem, "at least one such premise", fix)
    columns = [(name, arrow_type(name)) for name in COLUMNS[Shape.TRIPLETS]]
    others = [(name, dataset.table.schema.field(name).type) for name in _others(dataset)]
    schema = pa.schema([*columns, *others])
    parts = (slice(start, start + batch_rows) for start in range(0, len(entailed), batch_rows))
    batches = (_triplets(dataset.table, entailed[part], contradicted[part], schema) for part in parts)
    table = scratch_table(schema, chain.from_iterable(batches))
    return dataset.derive(table, "triplets", Shape.TRIPLETS)


def pairs_from_nli(dataset: Dataset) -> Dataset:
    """Make pairs (premise, entailed hypothesis), one per entailment in file order; other rows count as skipped."""
    if dataset.shape is not Shape.NLI:
        raise InputError(dataset.files[0], f"its shape is {dataset.shape}", "the shape nli", "give labelled NLI pairs")
    entailed = pc.equal(dataset.column("label"), ENTAILMENT).to_numpy()
    if not entailed.any():
        raise InputError(dataset.files[0], "no row has the label entailment", "at least one", "check the labels")
    table = keep_rows(dataset.table.select(["premise", "hypothesis", *_others(dataset)]), entailed)
    named = table.rename_columns([*COLUMNS[Shape.PAIRS], *_others(dataset)])
    pairs = dataset.derive(named, "entailed pairs", Shape.PAIRS)
    others = {"rows without entailment": int((~entailed).sum())} if not entailed.all() else {}
    used = {"anchor": dataset.own_name("premise"), "positive": dataset.own_name("hypothesis")}
    return replace(pairs, used=used, ignored=(), skipped={**dataset.skipped, **others})


def _others(dataset: Dataset) -> list[str]:
    """The columns besides those of the shape: kept on request, and the origin."""
    return [name for name in dataset.table.column_names if name not in COLUMNS[Shape.NLI]]


def _matched(dataset: Dataset) -> tuple[Rows, Rows]:
    """Return the matched rows of entailments and contradictions."""
    premises = dataset.column("premise").dictionary_encode().unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in premises.chunks]).astype(np.int64)
    sides = []
    for label in (ENTAILMENT, CONTRADICTION):
        rows = np.flatnonzero(pc.equal(dataset.column("label"), label).to_numpy())
        rows = rows[np.argsort(codes[rows], kind="stable")]  # by premise, then in file order
        sides.append((rows, _keys(codes[rows], len(codes))))
    (entailed, left), (contradicted, right) = sides
    _, i, j = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return entailed[i], contradicted[j]


def _keys(codes: Rows, rows: int) -> Rows:
    """Encode (premise, number of earlier rows with that premise) as one number, for codes in ascending order."""
    rank = np.arange(len(codes)) - np.searchsorted(codes, codes)
    return codes * rows + rank


def _triplets(table: pa.Table, entailed: Rows, contradicted: Rows, schema: pa.Schema) -> list[pa.RecordBatch]:
    rows = take_rows(table, entailed).combine_chunks()
    others = take_rows(table, contradicted).column("hypothesis").combine_chunks()
    negatives = pa.ListArray.from_arrays(np.arange(len(others) + 1, dtype=np.int32), others)
    columns = [rows.column(name) for name in ("premise", "hypothesis")]
    kept = [rows.column(name) for name in schema.names[len(COLUMNS[Shape.TRIPLETS]) :]]
    return pa.table([*columns, negatives, *kept], schema=schema).to_batches()
