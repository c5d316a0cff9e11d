"""SentEval's seven transfer tasks: a probe on frozen vectors, by SentEval's protocols.

MR, CR, SUBJ and MPQA by nested k-fold; SST-2 with L2 chosen on its dev part; TREC and MRPC with L2 chosen by k-fold on
the training part. Counts are those of SentEval's copies. The hub has no copy of CR with 3,775 rows and none of MPQA;
its copies of SUBJ, SST-2's test part and TREC are not used, since no revision of them is known to hold these rows.
"""

from sentloom.data.shapes import Shape
from sentloom.evaluation.suites.probed_sets import ProbedSet, probed_task
from sentloom.evaluation.suites.set_source import SetPart, SetSource
from sentloom.evaluation.task import Average, Suite, Task

GLUE = "nyu-mll/glue/{}@bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c:{}"  # configuration, split

MR = SetPart(
    "MR",
    10_662,
    ("senteval/MR",),
    "cornell-movie-review-data/rotten_tomatoes@aa13bc287fa6fcab6daf52f0dfb9994269ffea28:train+validation+test",
    {"0": 5331, "1": 5331},
    sha256=("bc531a09084f31737dd0719369aac507f67ca5874ae9af1a8e89486f1bae59dd",),
)
CR = SetPart("CR", 3775, ("senteval/CR",), labels={"0": 1368, "1": 2407})
SUBJ = SetPart(
    "SUBJ",
    10_000,
    ("senteval/SUBJ",),
    labels={"0": 5000, "1": 5000},
    sha256=("fa76117dbbb0b684edf9b8c8512c0e447509bc78ecaf013f202e9540b2b6a3a2",),
)
MPQA = SetPart(
    "MPQA",
    10_606,
    ("senteval/MPQA",),
    labels={"0": 7294, "1": 3312},
    sha256=("f2d7096c10eef54e4c76a5b649901ce445930d90b5d787205a9e0e119f609802",),
)
SST2_TRAIN = SetPart(
    "SST-2 train",
    67_349,
    ("senteval/SST2.train",),
    GLUE.format("sst2", "train"),
    {"0": 29_780, "1": 37_569},
    sha256=("d58511b6caeea451397d5461c0642a4c16d30c216efcc9da07c17db3980d458e",),
)
SST2_DEV = SetPart(
    "SST-2 dev",
    872,
    ("senteval/SST2.dev",),
    GLUE.format("sst2", "validation"),
    {"0": 428, "1": 444},
    sha256=("35e5a43a3f039d5fe2bb56b7ae5e9178c244759cbf114cb7f369687ccd7e7fce",),
)
# GLUE hides the labels of the test part.
SST2_TEST = SetPart(
    "SST-2 test",
    1821,
    ("senteval/SST2.test",),
    labels={"0": 912, "1": 909},
    sha256=("7c01cf66a50c4d187081c2a1ae575a6f718e99d0a6bfbd16a35baf22a1462abe",),
)
TREC_TRAIN = SetPart(
    "TREC train",
    5452,
    ("senteval/TREC.train",),
    labels={"ABBR": 86, "DESC": 1162, "ENTY": 1250, "HUM": 1223, "LOC": 835, "NUM": 896},
)
TREC_TEST = SetPart(
    "TREC test",
    500,
    ("senteval/TREC.test",),
    labels={"ABBR": 9, "DESC": 138, "ENTY": 94, "HUM": 65, "LOC": 81, "NUM": 113},
)
MRPC_TRAIN = SetPart(
    "MRPC train",
    4076,
    ("senteval/MRPC.train",),
    GLUE.format("mrpc", "train+validation"),
    {"0": 1323, "1": 2753},
    sha256=("e6478bd5aee6d2723669fb71d44636e60c12f87ebaca93bdafd57ab3d1420a7f",),
)
MRPC_TEST = SetPart(
    "MRPC test",
    1725,
    ("senteval/MRPC.test",),
    GLUE.format("mrpc", "test"),
    {"0": 578, "1": 1147},
    sha256=("34a97c9c7b0331d1b11ea5ed9d5e5af1342d5893a7ec867e473d394d92f7294e",),
)

SETS = {
    one.name: one
    for one in (
        *(ProbedSet(part.name, Shape.CLASSIFICATION, part) for part in (MR, CR, SUBJ, MPQA)),
        ProbedSet("SST-2", Shape.CLASSIFICATION, SST2_TRAIN, SST2_TEST, SST2_DEV),
        ProbedSet("TREC", Shape.CLASSIFICATION, TREC_TRAIN, TREC_TEST),
        ProbedSet(
            "MRPC",
            Shape.SCORED_PAIRS,
            MRPC_TRAIN,
            MRPC_TEST,
            features="difference-product",
            scores=("accuracy", "f1"),
        ),
    )
}


def load(name: str, origin: SetSource) -> Task:
    """The task of one of the seven sets."""
    return probed_task([SETS[name]], origin)


TRANSFER = Suite("transfer", tuple(SETS), load, (Average("mean of seven transfer tasks", tuple(SETS)),))
