"""Semantic textual similarity: the correlation of cosines with human scores, under three aggregations.

`spearman` is one correlation over all sub-sets of a set: "all" (SBERT, SimCSE, Sentence-T5, GenSE). `spearman-mean` and
`spearman-wmean` average the correlations of the sub-sets, unweighted or weighted by pairs (SentEval; BERT-flow and
BERT-whitening report the latter). STS-B and SICK-R are scored as a whole, by cosine only: the three are equal.
"""

from sentloom.data.shapes import Shape
from sentloom.evaluation.suites.pairs import correlation_task
from sentloom.evaluation.suites.senteval_folder import read_any
from sentloom.evaluation.suites.set_source import SetSource, check
from sentloom.evaluation.suites.set_tables import read_table
from sentloom.evaluation.task import Suite, Task

TABLE = read_table("sts")
STS_PARTS = TABLE.parts
SETS = tuple(name for name in STS_PARTS if name != "STS-B/dev")
WHOLE = ("STS-B", "STS-B/dev", "SICK-R")  # scored as a whole in all papers, even if rows name a genre


def load(name: str, origin: SetSource) -> Task:
    """Build the task of a set. Copies without a column `subset`, such as the hub's, have no `mean` and `wmean`."""
    part = STS_PARTS[name]
    rows = check(read_any(part, origin, Shape.SCORED_PAIRS, keep=("subset",)), part, origin)
    subsets = [name] * len(rows) if name in WHOLE else rows.columns.get("subset")
    return correlation_task(name, rows, subsets)


STS = Suite("sts", SETS, load, TABLE.means)
