"""Other languages: STS within and across them, and finding a sentence's translation.

STS17 has the tracks of SemEval-2017 and their later extensions, STS14 es the Spanish part of SemEval-2014, STS-B the
machine translations of its test part, CNSD STS-B the Chinese one. Tatoeba asks each sentence for its translation.
"""

from collections.abc import Sequence

import numpy as np

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.origin import Origin, Part, Rows, read_part
from sentloom.evaluation.pairs import correlation_task
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.task import Average, Lookup, Score, Scores, Suite, Task

STS17_HUB = "mteb/sts17-crosslingual-sts/{}@faeb762787bd10488a50c8b5be4a3b82e411949c:test"
STSB_HUB = "mteb/stsb_multi_mt/{}@29afa2569dcedaaa2fe6a3dcfebab33d28b82e8c:test"
CNSD_HUB = "mteb/STSB@e036defee8f190911de6fc825a944b928c8cda53:test"
TATOEBA_HUB = "mteb/tatoeba-bitext-mining/{}-eng@69e8f12da6e31d59addadda9a9c8a2e601a0e282:test"
# Each track with its name on the hub, which does not have the machine-translated one.
TRACKS = {
    **{name: name for name in ("ar-ar", "es-es", "es-en", "en-en", "en-de", "fr-en", "it-en", "nl-en", "ko-ko")},
    "ar-en": "en-ar",
    "tr-en": "en-tr",
    "es-en-wmt": "",
}
EIGHT = ("en-en", "es-es", "ar-ar", "ar-en", "en-de", "tr-en", "es-en", "fr-en")  # of BSL's table
TRANSLATIONS = ("de", "es", "fr", "it", "nl", "pl", "pt", "ru", "zh")
LANGUAGES = {  # of Tatoeba, with their names on the hub
    "de": "deu",
    "es": "spa",
    "fr": "fra",
    "zh": "cmn",
    "pt": "por",
    "it": "ita",
    "nl": "nld",
    "ru": "rus",
    "ar": "ara",
    "tr": "tur",
    "cs": "ces",
}
TATOEBA_HUB_NOTE = "the hub's copy is the Tatoeba set of LASER, 1,000 pairs"


def _sts17(track: str) -> Part:
    name, rows = TRACKS[track], 2846 if track == "ko-ko" else 250
    return Part(f"STS17 {track}", rows, (f"sts_multi/STS17.{track}",), STS17_HUB.format(name) if name else "")


PARTS = {
    part.name: part
    for part in (
        *map(_sts17, TRACKS),
        Part("STS14 es", 804, ("sts_multi/STS14.es",)),
        *(
            Part(f"STS-B {to}", 1379, (f"sts_multi/STSB_mt.{to}.test",), STSB_HUB.format(to))
            for to in (*TRANSLATIONS, "en")
        ),
        Part("CNSD STS-B", 1361, ("sts_multi/CNSD_STSB.zh.test",), CNSD_HUB),
        *(
            Part(f"Tatoeba en-{to}", None, (f"parallel/tatoeba_test.en-{to}",), TATOEBA_HUB.format(code))
            for to, code in LANGUAGES.items()
        ),
    )
}


def load(name: str, origin: Origin) -> Task:
    """The task of one of the sets."""
    if name not in PARTS:
        raise InputError("multilingual set", repr(name), f"one of {', '.join(PARTS)}", "name one of these")
    part = PARTS[name]
    if name.startswith("Tatoeba"):
        return _tatoeba(part, origin)
    rows = read_part(part, origin, Shape.SCORED_PAIRS, keep=("subset",) if name == "STS14 es" else ())
    return correlation_task(name, rows, rows.columns.get("subset"))


def translation_task(
    name: str, rows: Rows, to_target: str = "accuracy-to-target", to_source: str = "accuracy-to-source"
) -> Task:
    """Whether the sentence nearest to each one, on the other side, is its translation; `accuracy` is both ways' mean.

    A sentence that has several translations among the rows may find any of them. Ties count as wrong.
    """
    sources, targets = rows["source"], rows["target"]

    def score(lookup: Lookup) -> Scores:
        there, back = _found(lookup, sources, targets), _found(lookup, targets, sources)
        ways = {to_target: there, to_source: back, "accuracy": (there + back) / 2}
        return {label: Score("mean", found[:, None]) for label, found in ways.items()}

    return Task(
        name,
        "accuracy",
        {"symmetric": [*sources, *targets]},
        score,
        rows.source,
        rows.sha256,
        {"task": "translation"},
        rows.notes,
    )


def _tatoeba(part: Part, origin: Origin) -> Task:
    rows = read_part(part, origin, Shape.PARALLEL)
    if origin.folder is None:  # there English is the second side
        columns = {"source": rows["target"], "target": rows["source"]}
        rows = Rows(columns, rows.source, (*rows.notes, TATOEBA_HUB_NOTE))
    return translation_task(part.name, rows, "accuracy-from-english", "accuracy-to-english")


def _found(lookup: Lookup, queries: Sequence[str], documents: Sequence[str]) -> Numbers:
    """For each query 1 if the nearest of the distinct documents is one of its translations, else 0."""
    place = {text: number for number, text in enumerate(dict.fromkeys(documents))}
    right: dict[str, set[int]] = {}
    for text, translation in zip(queries, documents, strict=True):
        right.setdefault(text, set()).add(place[translation])
    ranks = ranks_of(lookup(queries), lookup(list(place)), [right[text] for text in queries])
    return np.array([float(found[0] == 1) for found in ranks])


MULTILINGUAL = Suite(
    "multilingual",
    tuple(PARTS),
    load,
    (
        Average("STS17 mean", tuple(f"STS17 {track}" for track in TRACKS)),
        Average("STS17 mean of eight tracks", tuple(f"STS17 {track}" for track in EIGHT)),
        Average("STS-B translations mean", tuple(f"STS-B {language}" for language in TRANSLATIONS)),
        Average("Tatoeba mean", tuple(f"Tatoeba en-{language}" for language in LANGUAGES)),
    ),
)
