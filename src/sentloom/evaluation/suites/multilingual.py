"""Other languages: STS within and across them, and finding a sentence's translation.

STS17 has the tracks of SemEval-2017 and their later extensions, STS14 es the Spanish part of SemEval-2014, STS-B the
machine translations of its test part, CNSD STS-B the Chinese one. Tatoeba asks each sentence for its translation.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.suites.pairs import correlation_task
from sentloom.evaluation.suites.set_source import Rows, SetPart, SetSource, read_part
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
# Of the contents that were compared with the published ones.
CHECKED = {
    "STS17 ar-ar": "00593dee10ea1d43aee4c6ad6b62662a5ace2aa637ab453266e8dc01279bd142",
    "STS17 es-es": "3e8e894e0b688610108f47cf20596c656a99a99340ba1b12ce9768186ff4c37e",
    "STS17 en-en": "42f1cf7c9421d11c6d18b1089b3ef0eec6b254bf02ccca5bc72156a4f9cd08ea",
    "STS17 ar-en": "5c9d3a77513819e365cdaad9834a5562d5c30fdb340dd4a0dd7046081f5f4af1",
    "STS17 es-en-wmt": "569ffac4492dc952766d9ee39f344660db828f04f16ab079b14caca2a9df59f8",
    "STS-B de": "b85db26e68f0f046348e7327ec1638f173556afb0e763c6e4e5cec59b5212d5e",
    "STS-B es": "617c3d2b16ff5e5a35baaa1b138613916d27973e2b602132eedc06848d1453d4",
    "STS-B fr": "1ae79403a9ee4395779aa1cd8a5e64d9aa585b9590d1c75775ede7a291728727",
    "STS-B pt": "3c6132d2fb8bd48b5085c50a52288fa6b7ab9ad715b6cdf1f988283d20b967e2",
    "STS-B zh": "5bc369336ca13e59e9fdc0d4f69fd151b037f42eb658ac0d7fc58976fa9bb8b4",
    "CNSD STS-B": "c95220a628b01702a4ac02ed7ea6dc57a5eb4e277df230dd7a5660fa222984c3",
    "Tatoeba en-de": "c06acc829c8146dfba6c851576653d8b278081be8d1507aed5845d6759523e79",
    "Tatoeba en-es": "6bf37efb5fc86f73da495a5e7563c05ccd3bbab06e23729ab5809ca8154e53c1",
    "Tatoeba en-fr": "aa082ee5bffb3191132a34471e34a7dba2cac7b2ec92897b998abf89e1fd26b2",
    "Tatoeba en-zh": "27273af0f742d35f39ae076daa341ccba12cf67f598948aad54bbd8182a72b76",
}
TATOEBA_HUB_NOTE = "the hub's copy is the Tatoeba set of LASER, 1,000 pairs"


def _sts17(track: str) -> SetPart:
    name, rows = TRACKS[track], 2846 if track == "ko-ko" else 250
    return SetPart(f"STS17 {track}", rows, (f"sts_multi/STS17.{track}",), STS17_HUB.format(name) if name else "")


PARTS = {
    part.name: replace(part, sha256=(CHECKED[part.name],)) if part.name in CHECKED else part
    for part in (
        *map(_sts17, TRACKS),
        SetPart("STS14 es", 804, ("sts_multi/STS14.es",)),
        *(
            SetPart(f"STS-B {to}", 1379, (f"sts_multi/STSB_mt.{to}.test",), STSB_HUB.format(to))
            for to in (*TRANSLATIONS, "en")
        ),
        SetPart("CNSD STS-B", 1361, ("sts_multi/CNSD_STSB.zh.test",), CNSD_HUB),
        *(
            SetPart(f"Tatoeba en-{to}", None, (f"parallel/tatoeba_test.en-{to}",), TATOEBA_HUB.format(code))
            for to, code in LANGUAGES.items()
        ),
    )
}


def load(name: str, origin: SetSource) -> Task:
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


def _tatoeba(part: SetPart, origin: SetSource) -> Task:
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
