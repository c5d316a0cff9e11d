"""What may help a fit that the gate refused, in sentences."""

import math
import shlex
from typing import Literal, assert_never

from sentloom.errors import option
from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.fitting.advice import Advice, AdviceKind
from sentloom.fitting.measures import Measure
from sentloom.fitting.result import FitResult


def advice(result: FitResult) -> list[str]:
    """All advice, a sentence or two each."""
    return [sentence(given, result.total) for given in result.advice if result.total]


def sentence(given: Advice, decided: Measure) -> str:
    """One piece of advice, with the numbers of what decided."""
    kind = given.kind
    match kind:
        case AdviceKind.LABEL:
            return (
                "Give labelled pairs, or name a labelled set that decides (--against): short or repetitive texts show "
                "too little without labels. If the base does not know their language, choose one that does (--base)."
            )
        case AdviceKind.ADD_PAIRS:
            return (
                "From raw text alone an encoder learns from a teacher at best "
                f"({option('teacher', 'MODEL')}). A few hundred labelled pairs (a question and its answer, a title and "
                f"its body) as a second file help most; labelled rows can also decide ({option('against', 'SET')})."
            )
        case AdviceKind.IMPROVE_DATA:
            others = "other kinds of pairs from the same domain, another base"
            return f"What may help: labels checked for mistakes, {others}."
        case AdviceKind.MORE_TIME:
            late = ", ".join(given.names)
            return f"Not tried for lack of time: {late}. A larger budget leaves time for more routes."
        case AdviceKind.MORE_STEPS:
            return f"So few steps ({given.number}) teach little: a larger budget ({option('budget')}) may gain more."
        case AdviceKind.ADD_CLUSTERS | AdviceKind.ADD_ROWS | AdviceKind.SETTLE:
            return _about_rows(kind, given.number, decided)
        case AdviceKind.KEEP_BASE | AdviceKind.KEEP_BETTER_BASE | AdviceKind.LITTLE_LEFT:
            return _about_base(kind, decided)
        case _:
            return _about_ticks(kind, given)


def _about_rows(
    kind: Literal[AdviceKind.ADD_CLUSTERS, AdviceKind.ADD_ROWS, AdviceKind.SETTLE], needed: int, decided: Measure
) -> str:
    against = option("against", "SET")
    match kind:
        case AdviceKind.ADD_CLUSTERS:
            more = math.ceil(LEAST_CLUSTERS - decided.effective)
            return (
                f"Too few test clusters to show anything: at least {more} more are needed. Add rows that share no text "
                f"with the others, at least three for each of these clusters, or name a set with {against}."
            )
        case AdviceKind.ADD_ROWS:
            return (
                f"A gain of {decided.difference:+.2f} in {decided.clusters:,} test clusters may be chance; about "
                f"{needed:,} would detect it with 80% power (rows that share a text count as one cluster). A tenth of "
                f"the rows is used for testing, up to a fifth of small files; name a larger set with {against}."
            )
        case AdviceKind.SETTLE:
            disagree = "The validation rows and the test rows disagree"
            return f"{disagree}: more rows, or a separate set (--against), would settle it."
        case _:
            assert_never(kind)


def _about_base(
    kind: Literal[AdviceKind.KEEP_BASE, AdviceKind.KEEP_BETTER_BASE, AdviceKind.LITTLE_LEFT], decided: Measure
) -> str:
    match kind:
        case AdviceKind.KEEP_BASE:
            return f"Training made the base worse by {-decided.difference:.2f} points: keep the base as it is."
        case AdviceKind.KEEP_BETTER_BASE:
            both = f"{decided.before:.2f} against {decided.after:.2f}"
            return f"The base is at least as good ({both}): keep the base as it is."
        case AdviceKind.LITTLE_LEFT:
            return f"The base already scores {decided.before:.2f} of 100 on these rows, which leaves little to gain."
        case _:
            assert_never(kind)


Ticking = Literal[
    AdviceKind.TICK,
    AdviceKind.TRY_TO_TICK,
    AdviceKind.NOTHING_TO_TICK,
    AdviceKind.TICK_MORE,
    AdviceKind.ALL_TICKED,
    AdviceKind.PEOPLE_KEEP_BASE,
]


def _about_ticks(kind: Ticking, given: Advice) -> str:
    match kind:
        case AdviceKind.TICK | AdviceKind.TRY_TO_TICK:
            late = f" There was no time left to see whether they disagree on the {LEAST_CLUSTERS} that this needs."
            return (
                f"You can decide in ten minutes: `sentloom tick {shlex.join(given.names)}` shows about 30 queries on "
                "which base and model disagree, and asks which result is right."
            ) + (late if kind is AdviceKind.TRY_TO_TICK else "")
        case AdviceKind.NOTHING_TO_TICK:
            return (
                f"There is nothing to decide: base and model return a different first result for {given.number:,} of "
                f"{given.of:,} held-out queries, and {LEAST_CLUSTERS} are needed to show a difference."
            )
        case AdviceKind.TICK_MORE:
            return f"More answers may show a difference: the next look is at {given.number:,} (`sentloom tick`)."
        case AdviceKind.ALL_TICKED:
            return "All queries with different results were asked. Labelled pairs as a second file help most."
        case AdviceKind.PEOPLE_KEEP_BASE:
            return "People prefer what the base finds: keep the base as it is."
        case _:
            assert_never(kind)
