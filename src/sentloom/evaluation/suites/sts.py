"""Semantic textual similarity: the correlation of cosines with people's scores, under three aggregations.

`spearman` joins the sub-sets of a set and takes one correlation: "all" (SBERT, SimCSE, Sentence-T5, GenSE).
`spearman-mean` and `spearman-wmean` take one a sub-set and average them, plainly or weighted by pairs (SentEval;
BERT-flow and BERT-whitening report the latter). STS-B and SICK-R are scored whole, by cosine alone: the three agree.
"""

from dataclasses import replace

from sentloom.data.shapes import Shape
from sentloom.errors import MissingPart
from sentloom.evaluation.suites import senteval_folder
from sentloom.evaluation.suites.pairs import correlation_task
from sentloom.evaluation.suites.set_source import SetPart, SetSource, check, read_rows
from sentloom.evaluation.task import Average, Suite, Task

STS_B = "mteb/stsbenchmark-sts@b0fddb56ed78048fa8b90373c8a3cfc37b684831"
CHECKED = {  # of the contents that were compared with the published ones
    "STS12": "a81af7028682e16d884b121db1417766febc03a2768fb98d8fbf4b44455aedef",
    "STS13": "3c546cee22ea2ddbdfb2a398d4ed65364d1d88783515c70cff57b4d6383f94d6",
    "STS14": "4422f24981ec3fc220708668dd94c60d5afab96d370008ab8359c55fed69ae52",
    "STS15": "a886706fef3129b86d17d9df7b0179e471d076f71ecde71fa9a2667b4fad1171",
    "STS-B": "47a7ec0ef2f27f111d786062320a333f107001d85822b17abf44435325f54414",
    "STS-B/dev": "0428f964a37b666db40a17c2e7887b99a4ff3b4f8ccd76e95aa0b54577ff3e2c",
}
STS_PARTS = {
    part.name: replace(part, sha256=(CHECKED[part.name],)) if part.name in CHECKED else part
    for part in (
        SetPart("STS12", 3108, ("sts/STS12", "STS12"), "mteb/sts12-sts@a0d554a64d88156834ff5ae9920b964011b16384:test"),
        SetPart("STS13", 1500, ("sts/STS13", "STS13"), "mteb/sts13-sts@7e90230a92c190f1bf69ae9002b8cea547a64cca:test"),
        SetPart("STS14", 3750, ("sts/STS14", "STS14"), "mteb/sts14-sts@6031580fec1f6af667f0bd2da0a551cf4f0b2375:test"),
        SetPart("STS15", 3000, ("sts/STS15", "STS15"), "mteb/sts15-sts@ae752c7c21bf194d8b67fd573edf7ae58183cbe3:test"),
        SetPart("STS16", 1186, ("sts/STS16", "STS16"), "mteb/sts16-sts@4d8694f8f0e0100860b497b999b3dbed754a0513:test"),
        SetPart("STS-B", 1379, ("sts/STSB.test", "sts/STS-B.test", "STSB.test"), f"{STS_B}:test"),
        SetPart("STS-B/dev", 1500, ("sts/STSB.dev", "sts/STS-B.dev", "STSB.dev"), f"{STS_B}:validation"),
        SetPart(
            "SICK-R",
            4927,
            ("sts/SICKR.test", "sts/SICK-R.test", "sts/SICK.test", "sts/SICKR", "sts/SICK-R", "SICKR.test"),
            "mteb/sickr-sts@20a6d6f312dd54037fe07a32d58e5e168867909d:test",
            also={9927: "9,927 pairs where 4,927 are published (the hub's copy joins train, trial and test)"},
        ),
    )
}
WHOLE = ("STS-B", "STS-B/dev", "SICK-R")  # scored whole by all papers, whatever genres their rows name
SETS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def load(name: str, origin: SetSource) -> Task:
    """The task of a set. Copies without a column `subset`, such as the hub's, have no `mean` and `wmean`."""
    part = STS_PARTS[name]
    try:
        rows = read_rows(part, origin, Shape.SCORED_PAIRS, keep=("subset",))
    except MissingPart:
        if (found := senteval_folder.rows_of(part, origin)) is None:
            raise
        rows = found
    rows = check(rows, part, origin)
    subsets = [name] * len(rows) if name in WHOLE else rows.columns.get("subset")
    return correlation_task(name, rows, subsets)


STS = Suite("sts", SETS, load, (Average("mean of the seven sets", SETS),))
