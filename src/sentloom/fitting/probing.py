"""The linear probes of labelled test rows: they decide nothing, and are measured last, if there is time."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sentloom.evaluation.suites.labels import probe_seconds
from sentloom.fitting.result import Measure
from sentloom.fitting.tasks import HeldOut
from sentloom.fitting.verify import Duel


def probing_time(parts: Sequence[HeldOut], dimension: int) -> float:
    """Seconds to train the probes of these parts for the base and the winner."""
    return sum(2 * probe_seconds(part.probe, dimension) for part in parts if part.probe)


def with_probes(
    duel: Duel, parts: Sequence[HeldOut], measures: Sequence[Measure], has_time: Callable[[str, float], bool]
) -> tuple[Measure, ...]:
    """The measures, each with the accuracy of its probe beside the other scores, if there is time for it."""
    by_name = {part.name: part for part in parts if part.probe}
    return tuple(
        _with_probe(duel, by_name[one.name], one, has_time) if one.name in by_name else one for one in measures
    )


def _with_probe(duel: Duel, part: HeldOut, one: Measure, has_time: Callable[[str, float], bool]) -> Measure:
    assert part.probe is not None
    if not has_time(f"the linear probe of {part.name}", probing_time([part], duel.after.dimension)):
        return one
    (before,), (after,) = duel.scores([part.probe])
    return replace(one, also={**one.also, "probe": (before["probe"].value, after["probe"].value)})
