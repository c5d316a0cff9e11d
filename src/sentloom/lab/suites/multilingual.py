"""Other languages: STS within and across languages, and translation retrieval.

STS17 has the tracks of SemEval-2017 and their later extensions, STS14 es the Spanish part of SemEval-2014, STS-B the
machine translations of its test part, CNSD STS-B the Chinese one. In Tatoeba, each sentence must find its translation.
"""

from sentloom.data.shapes import Shape
from sentloom.evaluation.pairs import correlation_task
from sentloom.evaluation.retrieval import translation_task
from sentloom.evaluation.set_source import Rows, SetPart, SetSource, read_part
from sentloom.evaluation.task import Suite, Task
from sentloom.lab.suites.set_tables import read_table

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


def _tatoeba(part: SetPart, origin: SetSource) -> Task:
    rows = read_part(part, origin, Shape.PARALLEL)
    if origin.folder is None:  # English is the second side there
        columns = {"source": rows["target"], "target": rows["source"]}
        rows = Rows(columns, rows.source, (*rows.notes, TATOEBA_HUB_NOTE))
    return translation_task(part.name, rows, None, "accuracy-from-english", "accuracy-to-english")


DEV = tuple(name for name in PARTS if name.endswith("/dev"))  # models are selected on a dev part
SETS = tuple(name for name in PARTS if name not in DEV)
MULTILINGUAL = Suite("multilingual", SETS, load, TABLE.means, DEV)
