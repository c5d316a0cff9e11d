"""Other languages: STS within and across languages, and translation retrieval.

STS17 has the tracks of SemEval-2017 and their later extensions, STS14 es the Spanish part of SemEval-2014, STS-B the
machine translations of its test part, CNSD STS-B the Chinese one. In Tatoeba, each sentence must find its translation.
"""

from collections.abc import Sequence

import numpy as np

from sentloom.data.shapes import Shape
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.suites.pairs import clusters_of, correlation_task
from sentloom.evaluation.suites.set_source import Rows, SetPart, SetSource, joint_sha256, read_part
from sentloom.evaluation.suites.set_tables import read_table
from sentloom.evaluation.task import Lookup, Score, Scores, Suite, Task

TABLE = read_table("multilingual")
PARTS = TABLE.parts
TATOEBA_HUB_NOTE = "the hub's copy is the Tatoeba set of LASER, 1,000 pairs"


def load(name: str, origin: SetSource) -> Task:
    """Build the task of one of the sets."""
    part = PARTS[name]
    if name.startswith("Tatoeba"):
        return _tatoeba(part, origin)
    rows = read_part(part, origin, Shape.SCORED_PAIRS, keep=("subset",) if name == "STS14 es" else ())
    return correlation_task(name, rows, rows.columns.get("subset"))


def translation_task(
    name: str,
    rows: Rows,
    known: Rows | None = None,
    to_target: str = "accuracy-to-target",
    to_source: str = "accuracy-to-source",
) -> Task:
    """Build the task of finding each sentence's translation; `accuracy` is the mean of both directions.

    Sentences search among those of `rows` and `known`, which has translations besides `rows`. A sentence with several
    translations may find any of them. Ties count as wrong.
    """
    sources, targets = ([*rows[side], *(known[side] if known else ())] for side in ("source", "target"))

    def score(lookup: Lookup) -> Scores:
        there, back = (_found(lookup, *sides, len(rows)) for sides in ((sources, targets), (targets, sources)))
        ways = {to_target: there, to_source: back, "accuracy": (there + back) / 2}
        return {label: Score("mean", found[:, None], clusters=clusters_of(rows)) for label, found in ways.items()}

    return Task(
        name,
        "accuracy",
        {"symmetric": [*sources, *targets]},
        score,
        rows.source,
        joint_sha256(rows, known),
        {"task": "translation"},
        rows.notes,
        tuple(zip(rows["source"], rows["target"], strict=True)),
    )


def _tatoeba(part: SetPart, origin: SetSource) -> Task:
    rows = read_part(part, origin, Shape.PARALLEL)
    if origin.folder is None:  # English is the second side there
        columns = {"source": rows["target"], "target": rows["source"]}
        rows = Rows(columns, rows.source, (*rows.notes, TATOEBA_HUB_NOTE))
    return translation_task(part.name, rows, None, "accuracy-from-english", "accuracy-to-english")


def _found(lookup: Lookup, queries: Sequence[str], documents: Sequence[str], asked: int) -> Numbers:
    """Return for each of the first queries 1 if the closest distinct document is one of its translations, else 0."""
    place = {text: number for number, text in enumerate(dict.fromkeys(documents))}
    right: dict[str, set[int]] = {}
    for text, translation in zip(queries, documents, strict=True):
        right.setdefault(text, set()).add(place[translation])
    ranks = ranks_of(lookup(queries[:asked]), lookup(list(place)), [right[text] for text in queries[:asked]])
    return np.array([float(found[0] == 1) for found in ranks])


SETS = tuple(name for name in PARTS if not name.endswith("/dev"))  # models are selected on a dev part
MULTILINGUAL = Suite("multilingual", SETS, load, TABLE.means)
