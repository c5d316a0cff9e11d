"""GLUE by fine-tuning (self-guided, Table 10): a copy of the encoder learns each task with a classification head.

As in the paper, the test labels being hidden, the first tenth of the dev part chooses the epoch and the rest of it is
scored. The paper states no other setting: those of `fine_tuning.SETTINGS` are BERT's usual ones.
"""

from functools import partial
from typing import TYPE_CHECKING

from sentloom.errors import InputError
from sentloom.evaluation.metrics import METRICS
from sentloom.evaluation.suites.probed_sets import ProbedSet, read_edition, sides
from sentloom.evaluation.suites.sentglue import SETS as SENTGLUE_SETS
from sentloom.evaluation.suites.set_source import Rows, SetSource, joint_sha256
from sentloom.evaluation.task import Score, Scores, Suite, Task

if TYPE_CHECKING:  # it needs torch, which takes seconds to import
    from sentloom.evaluation.bench import Model

NAMES = ("QNLI", "SST-2", "CoLA", "MRPC", "RTE")  # of Table 10
SETS = {name: [edition for edition in SENTGLUE_SETS[name] if edition.test] for name in NAMES}
CHOOSING = 0.1  # of the dev part
SEED = 1


def load(name: str, origin: SetSource) -> Task:
    """Build the task of one of the five sets."""
    from sentloom.evaluation.fine_tuning import MAX_LENGTH, SETTINGS

    edition, (train, test) = read_edition(SETS[name], origin)
    given = {**SETTINGS.model_dump(exclude_defaults=True), "max_length": MAX_LENGTH}
    return Task(
        name=name,
        main=edition.scores[0],
        texts={"symmetric": [text for part in (train, test) for side in sides(part) for text in side]},
        score=partial(_scores, edition, train, test),
        source=", ".join(dict.fromkeys((train.source, test.source))),
        sha256=joint_sha256(train, test),
        settings={"protocol": "fine-tuned", **given},
        notes=tuple(dict.fromkeys(note for note in (*train.notes, *test.notes, edition.note) if note)),
    ).under(SEED)


def _scores(one: ProbedSet, train: Rows, dev: Rows, model: "Model", seed: int) -> Scores:
    from sentloom.encoder import Encoder
    from sentloom.evaluation.fine_tuning import Examples, fine_tune

    if not isinstance(model, Encoder):
        problem = f"a {type(model).__name__} has no weights to fine-tune"
        raise InputError("fine-tuning", problem, "an encoder", "choose another model, or the suite sentglue")
    names = {label: number for number, label in enumerate(sorted(set(train["label"])))}
    learned, known = (Examples(tuple(sides(part)), [names[label] for label in part["label"]]) for part in (train, dev))
    first = max(1, round(CHOOSING * len(known)))
    choosing, test = known.take(range(first)), known.take(range(first, len(known)))
    items = fine_tune(model, learned, choosing, test, METRICS[one.scores[0]], seed=seed, show_progress=True)
    return {score: Score(score, items) for score in one.scores}


GLUE = Suite("glue", NAMES, load, ())
