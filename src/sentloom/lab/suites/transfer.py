"""SentEval's seven transfer tasks and the nine tasks of SentGLUE: a probe on frozen vectors.

SentEval's protocols: MR, CR, SUBJ and MPQA use nested k-fold; SST-2 chooses L2 on its dev part; TREC and MRPC choose L2
by k-fold on the training part. Counts are those of SentEval's copies. The hub has no copy of CR with 3,775 rows and
none of MPQA; its copies of SUBJ, SST-2's test part (GLUE hides its labels) and TREC are not used, because no revision
is known to have these rows.
"""

from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.task import Suite, Task
from sentloom.lab.suites.probed_sets import probed_task
from sentloom.lab.suites.set_tables import read_table

TRANSFER_TABLE, SENTGLUE_TABLE = read_table("transfer"), read_table("sentglue")
TRANSFER_SETS = TRANSFER_TABLE.probed(TRANSFER_TABLE.parts)
SENTGLUE_SETS = SENTGLUE_TABLE.probed(TRANSFER_TABLE.parts | SENTGLUE_TABLE.parts)
MOST_ROWS = 50_000  # for training: the features of all of QQP or MNLI would take gigabytes


def load_transfer(name: str, origin: SetSource) -> Task:
    """Build the task of one of the seven sets."""
    return probed_task(TRANSFER_SETS[name], origin)


def load_sentglue(name: str, origin: SetSource) -> Task:
    """Build the task of one of the nine sets."""
    return probed_task(SENTGLUE_SETS[name], origin, MOST_ROWS)


TRANSFER = Suite("transfer", tuple(TRANSFER_SETS), load_transfer, TRANSFER_TABLE.means)
SENTGLUE = Suite("sentglue", tuple(SENTGLUE_SETS), load_sentglue, SENTGLUE_TABLE.means)
