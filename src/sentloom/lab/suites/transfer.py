"""SentEval's seven transfer tasks: a probe on frozen vectors, by SentEval's protocols.

MR, CR, SUBJ and MPQA use nested k-fold; SST-2 chooses L2 on its dev part; TREC and MRPC choose L2 by k-fold on the
training part. Counts are those of SentEval's copies. The hub has no copy of CR with 3,775 rows and none of MPQA; its
copies of SUBJ, SST-2's test part (GLUE hides its labels) and TREC are not used, because no revision is known to have
these rows.
"""

from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.task import Suite, Task
from sentloom.lab.suites import transfer
from sentloom.lab.suites.probed_sets import probed_task
from sentloom.lab.suites.set_tables import read_table

TABLE = read_table("transfer")
SETS = TABLE.probed(TABLE.parts)


def load(name: str, origin: SetSource) -> Task:
    """Build the task of one of the seven sets."""
    return probed_task(SETS[name], origin)


TRANSFER = Suite("transfer", tuple(SETS), load, TABLE.means)


MOST_ROWS = 50_000  # for training: the features of all of QQP or MNLI would take gigabytes
SENTGLUE_TABLE = read_table("sentglue")
SENTGLUE_SETS = SENTGLUE_TABLE.probed(transfer.TABLE.parts | SENTGLUE_TABLE.parts)


def load_sentglue(name: str, origin: SetSource) -> Task:
    """Build the task of one of the nine sets."""
    return probed_task(SENTGLUE_SETS[name], origin, MOST_ROWS)


SENTGLUE = Suite("sentglue", tuple(SENTGLUE_SETS), load_sentglue, SENTGLUE_TABLE.means)
