"""Score a row on the sets that are here: a set that is missing leaves out a column, not the row."""

from collections.abc import Mapping
from dataclasses import replace

from sentloom.engine.evaluation_sets import find_evaluation_set
from sentloom.engine.plan import Plan
from sentloom.engine.schema import Evaluate
from sentloom.errors import MissingPart
from sentloom.lab.results import Row


def missing_sets(plan: Plan) -> dict[str, str]:
    """The sets of a plan that are neither in the data folder nor on the hub, and why."""
    missing: dict[str, str] = {}
    if plan.evaluate is None:
        return missing
    for name in plan.evaluate.sets:
        try:
            find_evaluation_set(name, plan.evaluate.data)
        except MissingPart as error:
            missing[name] = error.problem
    return missing


def without_sets(plan: Plan, missing: Mapping[str, str]) -> Plan:
    """The plan scored on the other sets; means are over those, and a mean without any is left out."""
    if plan.evaluate is None:
        return plan
    means = {name: left for name, sets in plan.evaluate.means.items() if (left := _without(sets, missing))}
    evaluate = plan.evaluate.model_copy(update={"sets": _without(plan.evaluate.sets, missing), "means": means})
    return replace(plan, evaluate=evaluate)


def marked(row: Row, evaluate: Evaluate, missing: Mapping[str, str]) -> Row:
    """A row whose means say which of their sets are missing; such a mean is not comparable with a published one."""
    means = {**evaluate.means, **({"mean": evaluate.sets} if evaluate.mean else {})}
    lacking = {name: [part for part in sets if part in missing] for name, sets in means.items() if name in row.after}
    notes = {name: (f"without {', '.join(parts)}: {missing[parts[0]]}",) for name, parts in lacking.items() if parts}
    joined = {name: (*row.notes.get(name, ()), *note) for name, note in notes.items()}
    unlike = dict.fromkeys((*row.not_comparable, *notes))
    return replace(row, notes={**row.notes, **joined}, not_comparable=tuple(unlike))


def _without(sets: tuple[str, ...], missing: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in sets if name not in missing)
