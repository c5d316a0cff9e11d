"""A row that adapts to a domain is trained once for each, and scored on the sets of that domain (GenSE's Table 3)."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import mean

from sentloom.engine.plan import Plan
from sentloom.lab.results import Row

DOMAIN = "domain:sentences"  # as a stage's data: the sentences of the domain that the plan is for


def by_domain(plan: Plan) -> dict[str, Plan]:
    """A plan for each domain of a row that reads one, by the domain's name; nothing for other rows.

    All are scored on all sets, so that they share the stages before the first that reads the domain's sentences.
    """
    if not any(DOMAIN in stage.sources for stage in plan.stages):
        return {}
    return {name: _for_domain(plan, name, domain.data) for name, domain in plan.domains.items()}


def _for_domain(plan: Plan, name: str, data: str) -> Plan:
    def located(source: str) -> str:
        return data if source == DOMAIN else source

    stages = tuple(stage.located(located) for stage in plan.stages)
    return replace(plan, name=f"{plan.name}, {name}", stages=stages, published={}, published_deviation={}, domains={})


def joined(plan: Plan, rows: Mapping[str, Row]) -> Row:
    """One row: of every domain's row the scores on its own sets, and the means over them."""
    after: dict[str, float] = {}
    deviation: dict[str, float | None] = {}
    for name, domain in plan.domains.items():
        after |= {part: rows[name].after[part] for part in domain.sets if part in rows[name].after}
        deviation |= {part: rows[name].deviation[part] for part in domain.sets if part in after}
    evaluate = plan.evaluate
    means = {**evaluate.means, **({"mean": evaluate.sets} if evaluate.mean else {})} if evaluate else {}
    every, first = rows.values(), next(iter(rows.values()))
    unlike = {name for row in every for name in row.not_comparable}
    for name, sets in means.items():
        here = [part for part in sets if part in after]
        if counted := [part for part in here if part not in unlike] or here:
            after[name], deviation[name] = mean(after[part] for part in counted), None
    return replace(
        first,
        name=plan.name,
        after=after,
        deviation=deviation,
        published=plan.published,
        published_deviation=plan.published_deviation,
        seconds=sum(row.seconds for row in every),
        transductive=any(row.transductive for row in every),
        made=[made for row in every for made in row.made],
        notes={name: notes for row in every for name, notes in row.notes.items() if name in after},
        not_comparable=[name for name in after if name in unlike],
    )
