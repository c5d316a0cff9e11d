"""The reference: the base that the winner has to beat, which is the best one on the validation rows.

It need not be the one that the winner started from: being better than a weak base is no reason to use a model.
"""

from collections.abc import Sequence

from sentloom.evaluation.bench import Memory, main_scores
from sentloom.evaluation.task import Score
from sentloom.fitting.bases import Base
from sentloom.fitting.cross_validation import fold_scores
from sentloom.fitting.prepare import Prepared


def strongest(bases: Sequence[Base], prepared: Prepared, memory: Memory) -> Base:
    """The base with the best mean score on the validation rows or folds; among equals the first."""
    return bases[0] if len(bases) == 1 else max(bases, key=lambda one: mean_score(one, prepared, memory))


def mean_score(base: Base, prepared: Prepared, memory: Memory) -> float:
    """The mean of the main scores of a base on what chooses among the runs."""
    found = choosing_scores(base, prepared, memory)
    return sum(score.value for score in found) / len(found)


def choosing_scores(base: Base, prepared: Prepared, memory: Memory) -> list[Score]:
    """The main scores of a base on the validation rows, or on the folds."""
    if prepared.folds:
        return fold_scores([base.encoder] * len(prepared.folds), prepared.folds, memory)
    return main_scores(base.encoder, prepared.choosing, memory)
