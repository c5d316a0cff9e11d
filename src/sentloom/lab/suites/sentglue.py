"""SentGLUE (Sentence-T5): nine GLUE tasks on vectors of single sentences.

A probe is trained on the training part and scored on the dev part; its L2 is chosen by k-fold on the training part. The
paper states neither the features of pairs nor the metrics, and its Score cannot be computed from its columns: the
features are in the table, the metrics are GLUE's, and the mean is our own.
"""

from sentloom.evaluation.suites.set_source import SetSource
from sentloom.evaluation.task import Suite, Task
from sentloom.lab.suites import transfer
from sentloom.lab.suites.probed_sets import probed_task
from sentloom.lab.suites.set_tables import read_table

MOST_ROWS = 50_000  # for training: the features of all of QQP or MNLI would take gigabytes
TABLE = read_table("sentglue")
SETS = TABLE.probed(transfer.TABLE.parts | TABLE.parts)


def load(name: str, origin: SetSource) -> Task:
    """Build the task of one of the nine sets."""
    return probed_task(SETS[name], origin, MOST_ROWS)


SENTGLUE = Suite("sentglue", tuple(SETS), load, TABLE.means)
