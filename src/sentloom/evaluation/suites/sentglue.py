"""SentGLUE (Sentence-T5): nine GLUE tasks on vectors of sentences that were encoded one by one.

A probe learns from the training part and is scored on the dev part; its L2 is chosen by k-fold on the training part.
The paper states neither the features of pairs nor the metrics, and its Score cannot be computed from its columns: the
features are those below, the metrics are GLUE's, and the mean is our own.
"""

from collections.abc import Sequence

from sentloom.data.shapes import Shape
from sentloom.evaluation.suites.probed_sets import ProbedSet, probed_task
from sentloom.evaluation.suites.set_source import SetPart, SetSource
from sentloom.evaluation.suites.transfer import GLUE, MRPC_TEST, MRPC_TRAIN, SST2_DEV, SST2_TRAIN
from sentloom.evaluation.task import Average, Suite, Task

MOST_ROWS = 50_000  # of training: the features of all of QQP or MNLI would take gigabytes
STSB = "mteb/stsbenchmark-sts@b0fddb56ed78048fa8b90373c8a3cfc37b684831:{}"
INCOMPARABLE = "not comparable with published scores"

COLA_TRAIN = SetPart(
    "CoLA train",
    8551,
    ("glue/CoLA.train",),
    GLUE.format("cola", "train"),
    {"0": 2528, "1": 6023},
    sha256=("eda8f4f33c514408e627e3e5ea4a23cb8a93264d28d5535eee320315f17f306d",),
)
COLA_DEV = SetPart(
    "CoLA dev",
    1043,
    ("glue/CoLA.dev",),
    GLUE.format("cola", "validation"),
    {"0": 322, "1": 721},
    sha256=("b056972ee3b08c2c6da4b3796e4379a32ebd28e001e622692f7573a7067e67dd",),
)
GLUE_MRPC_TRAIN = SetPart(
    "MRPC train", 3668, ("glue/MRPC.train",), GLUE.format("mrpc", "train"), {"0": 1194, "1": 2474}
)
GLUE_MRPC_DEV = SetPart("MRPC dev", 408, ("glue/MRPC.dev",), GLUE.format("mrpc", "validation"), {"0": 129, "1": 279})
STSB_TRAIN = SetPart(
    "STS-B train",
    5749,
    ("sts/STSB.train",),
    STSB.format("train"),
    sha256=("b8c3272c5cb1ba010c01c62b8b17524a8df6263e4d0994d063b0f69acc2b090b",),
)
STSB_DEV = SetPart(
    "STS-B dev",
    1500,
    ("sts/STSB.dev",),
    STSB.format("validation"),
    sha256=("dd24a30fc74c8611137d648b9918b30c4d6962ba5b04886f34d54df6df192ec9",),
)
QQP_TRAIN = SetPart(
    "QQP train",
    363_846,
    ("glue/QQP.train",),
    GLUE.format("qqp", "train"),
    {"0": 229_468, "1": 134_378},
    {363_849: "GLUE's own file with three rows that the hub's copy left out"},
)
QQP_DEV = SetPart(
    "QQP dev",
    40_430,
    ("glue/QQP.dev",),
    GLUE.format("qqp", "validation"),
    {"0": 25_545, "1": 14_885},
)
QQP_DEV10K = SetPart(
    "QQP dev10k",
    10_000,
    ("glue/QQP.dev10k",),
    labels={"0": 5000, "1": 5000},
    sha256=("883342c8d3a3675134b3c1ff79f5dc9b8972072b39370cfb67d0e95a1c0865a8",),
)
QQP_TEST10K = SetPart(
    "QQP test10k",
    10_000,
    ("glue/QQP.test10k",),
    labels={"0": 5000, "1": 5000},
    sha256=("9652b06dfd2d29cb70ef2634f9ed69bd9afaa4786a5a5cfcb8c30bf164e4c935",),
)
MNLI_TRAIN = SetPart(
    "MNLI train",
    392_702,
    ("glue/MNLI.train", "nli/pairs/MNLI.train"),
    GLUE.format("mnli", "train"),
    {"entailment": 130_899, "neutral": 130_900, "contradiction": 130_903},
)
MNLI_SAMPLE = SetPart(
    "MNLI train10k",
    10_000,
    ("nli/pairs/MNLI.train10k",),
    sha256=("c03eebdb4d493d3b21031adf9a1d17b17b84f0c0b66168e42d0a6cf4046df40d",),
)
MNLI_MATCHED = SetPart(
    "MNLI dev matched",
    9815,
    ("glue/MNLI.dev_matched", "nli/pairs/MNLI.dev_matched"),
    GLUE.format("mnli", "validation_matched"),
    {"entailment": 3479, "neutral": 3123, "contradiction": 3213},
    sha256=("3b8ee522080982f34fc8c6d5aa43d5a3f48feed801c633e5466799fc629ab25c",),
)
MNLI_MISMATCHED = SetPart(
    "MNLI dev mismatched",
    9832,
    ("glue/MNLI.dev_mismatched", "nli/pairs/MNLI.dev_mismatched"),
    GLUE.format("mnli", "validation_mismatched"),
    {"entailment": 3463, "neutral": 3129, "contradiction": 3240},
    sha256=("3d1c32e7680f7ee37498356d8b7652fccecf9bec94ae74a9b05982920d9c44b1",),
)
QNLI_TRAIN = SetPart(
    "QNLI train",
    104_743,
    ("glue/QNLI.train",),
    GLUE.format("qnli", "train"),
    also={108_436: "GLUE's first release of QNLI"},
)
QNLI_DEV = SetPart(
    "QNLI dev",
    5463,
    ("glue/QNLI.dev",),
    GLUE.format("qnli", "validation"),
    {"entailment": 2702, "not_entailment": 2761},
    {5732: "GLUE's first release of QNLI"},
    sha256=("c19902ed6dde9c45926561b907c9afb66cc00ac8298159f58354ca79db8f2e54",),
)
RTE_TRAIN = SetPart(
    "RTE train",
    2490,
    ("glue/RTE.train",),
    GLUE.format("rte", "train"),
    {"entailment": 1249, "not_entailment": 1241},
    sha256=("eb3a4b72720680c506f9e2343a4436933471b38a50aba09c9702634a431fe649",),
)
RTE_DEV = SetPart(
    "RTE dev",
    277,
    ("glue/RTE.dev",),
    GLUE.format("rte", "validation"),
    {"entailment": 146, "not_entailment": 131},
    sha256=("8febc1ec8874cfdf133be8ed4a21111862f4d2fa316d25f5e305868c3073d6e3",),
)


def _similarity(name: str, train: SetPart, test: SetPart, note: str = "") -> ProbedSet:
    """Pairs that are alike or not: the order of the two sentences tells nothing."""
    scores = ("accuracy", "f1")
    return ProbedSet(name, Shape.SCORED_PAIRS, train, test, features="difference-product", scores=scores, note=note)


def _inference(name: str, train: SetPart, test: SetPart | None, note: str = "") -> ProbedSet:
    return ProbedSet(name, Shape.NLI, train, test, features="both-difference-product", note=note)


def _mnli(name: str, dev: SetPart) -> Sequence[ProbedSet]:
    note = f"a sample of 10,000 rows of the training part: {INCOMPARABLE}"
    return _inference(name, MNLI_TRAIN, dev), _inference(name, MNLI_SAMPLE, dev, note)


_STS_B = ProbedSet(
    "STS-B",
    Shape.SCORED_PAIRS,
    STSB_TRAIN,
    STSB_DEV,
    features="difference-product",
    scores=("spearman", "pearson"),
    limits=(0, 5),
)
# Of each set its editions, the published one first; the first whose parts are all at hand is taken.
SETS: dict[str, Sequence[ProbedSet]] = {
    "CoLA": [ProbedSet("CoLA", Shape.CLASSIFICATION, COLA_TRAIN, COLA_DEV, scores=("matthews", "accuracy"))],
    "SST-2": [ProbedSet("SST-2", Shape.CLASSIFICATION, SST2_TRAIN, SST2_DEV)],
    "MRPC": [
        _similarity("MRPC", GLUE_MRPC_TRAIN, GLUE_MRPC_DEV),
        _similarity("MRPC", MRPC_TRAIN, MRPC_TEST, f"SentEval's parts, scored on test and not on dev: {INCOMPARABLE}"),
    ],
    "STS-B": [_STS_B],
    "QQP": [
        _similarity("QQP", QQP_TRAIN, QQP_DEV),
        _similarity(
            "QQP", QQP_DEV10K, QQP_TEST10K, f"two balanced samples of 10,000 rows, not GLUE's parts: {INCOMPARABLE}"
        ),
    ],
    "MNLI-m": _mnli("MNLI-m", MNLI_MATCHED),
    "MNLI-mm": _mnli("MNLI-mm", MNLI_MISMATCHED),
    "QNLI": [
        _inference("QNLI", QNLI_TRAIN, QNLI_DEV),
        _inference("QNLI", QNLI_DEV, None, f"no training part, so that dev is cross-validated: {INCOMPARABLE}"),
    ],
    "RTE": [_inference("RTE", RTE_TRAIN, RTE_DEV)],
}


def load(name: str, origin: SetSource) -> Task:
    """The task of one of the nine sets."""
    return probed_task(SETS[name], origin, MOST_ROWS)


SENTGLUE = Suite(
    "sentglue", tuple(SETS), load, (Average("our mean of nine tasks (MNLI-m and MNLI-mm apart)", tuple(SETS)),)
)
