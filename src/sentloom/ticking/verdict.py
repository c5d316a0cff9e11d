"""From a fit to its questions, and from the answers to its verdict, in the language of its gate.

Whoever looks after every answer and stops when the interval is above 0 finds a gain by chance. So the verdict rests on
the first 30 answers of each person, then on the first 60, 120, 240 and so on, and every such look counts as a use of
the test rows, which makes the interval wider. Between two looks, the estimate is shown and decides nothing.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.encoder.loading import shared_encoder
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.significance import LEAST_CLUSTERS, LEVEL, are_enough, corrected_level
from sentloom.fitting.advice import Advice, AdviceKind
from sentloom.fitting.gate import Gate, Uses, judge, record_use
from sentloom.fitting.measures import NO_DIFFERENCE, Measure, verdict_line
from sentloom.fitting.race import BEST
from sentloom.fitting.result import FitResult, Ticks
from sentloom.fitting.stored import tested_encoder
from sentloom.progress import OutOfTime, deadline
from sentloom.ticking.answers import Answers, Header, Tick, header_for, merged
from sentloom.ticking.estimate import Stratum, agreement, estimate, is_possible
from sentloom.ticking.questions import (
    Questions,
    asking_task,
    encoded,
    make_questions,
    read_fit,
    read_queries,
    read_searched,
)

FIRST_LOOK = 30
LAST = 1.5  # times the answers of the look before
LABEL = "people prefer the first result of one model"


@dataclass(frozen=True)
class FitQuestions:
    """What a fit asks people."""

    questions: Questions
    header: Header
    queries: tuple[str, ...]  # all of them, also those with equal first results
    command: str  # of the fit
    label_free: bool  # whether the answers decide, because no labels did


def find_questions(folder: Path, others: Sequence[Answers] = ()) -> FitQuestions:
    """Encode queries and corpus with both models, and compare their first results; vectors are cached."""
    result = read_fit(folder)
    refuse_other_fit(others, result)
    queries, models = read_queries(folder), (shared_encoder(result.base), tested_encoder(folder, result))
    questions = _questions(folder, queries, models)
    refuse_too_few(questions, folder, result)
    header = header_for(questions, *(model.fingerprint() for model in models))
    for person in others:
        if person.header.subject != header.subject:
            problem = "its answers are about other questions"
            raise InputError(person.name, problem, "answers about this fit", "leave it out")
    return FitQuestions(questions, header, queries, without_labels(result.command), result.label_free)


def _questions(folder: Path, queries: Sequence[str], models: Sequence[Encoder]) -> Questions:
    searched, memory = read_searched(folder), open_memory(folder / "measured")
    base, fitted = (encoded(model, queries, searched, memory) for model in models)
    return make_questions(queries, searched.texts, base, fitted, searched.of)


def refuse_too_few(questions: Questions, folder: Path, result: FitResult) -> None:
    """Refuse models that hardly differ."""
    if are_too_few(questions):
        problem = f"its models return a different first result for {len(questions.asked)} of {questions.total:,}"
        fix = f"keep to the verdict of the fit ({result.verdict}), which rests on labels"
        if result.label_free:
            fix = "use the base: a model that finds the same texts is no better; or fit longer, or to more rows"
        expected = f"at least {LEAST_CLUSTERS}, to show a difference"
        raise InputError(str(folder), f"{problem} held-out queries", expected, fix)


def are_too_few(questions: Questions) -> bool:
    """Whether the models hardly differ: as few answers as that show nothing."""
    return not are_enough(len(questions.asked))


def without_labels(command: str) -> str:
    """The command of a fit without the files of answers that it was given."""
    parts = shlex.split(command)
    named = {place for place, part in enumerate(parts) if part == "--labels"}
    return shlex.join(part for place, part in enumerate(parts) if not {place, place - 1} & named)


def refuse_other_fit(people: Sequence[Answers], result: FitResult) -> None:
    """All answers must be about the models of this fit, and about the same questions."""
    for person in people:
        about = person.header.base, person.header.fitted
        if about != (result.hashes.get("base"), result.hashes.get("model")):
            problem = "its answers are about other models than those of this fit"
            fix = "tick again: the answers say which of two results is better, and another model returns other results"
            raise InputError(person.name, problem, "answers about this base and this model", fix)
        if person.header.subject != people[0].header.subject:
            raise InputError(person.name, f"it asks other questions than {people[0].name}", "", "leave one of them out")


def with_true_advice(result: FitResult, folder: Path, seconds: float) -> FitResult:
    """The result, advising to tick only if there is enough to tick; that is found out in at most `seconds`."""
    if not any(given.kind is AdviceKind.TICK for given in result.advice):
        return result
    try:
        with deadline(seconds):
            models = shared_encoder(result.base), tested_encoder(folder, result)
            questions = _questions(folder, read_queries(folder), models)
    except OutOfTime:
        return _with_tick_advice(result, AdviceKind.TRY_TO_TICK)
    if not are_too_few(questions):
        return result
    return _with_tick_advice(result, AdviceKind.NOTHING_TO_TICK, len(questions.asked), questions.total)


def _with_tick_advice(result: FitResult, kind: AdviceKind, number: int = 0, of: int = 0) -> FitResult:
    """The result with other advice in the place of that to tick."""
    advice = (
        replace(given, kind=kind, number=number, of=of) if given.kind is AdviceKind.TICK else given
        for given in result.advice
    )
    return replace(result, advice=tuple(advice))


@dataclass(frozen=True)
class Ruling:
    """What the ticks show so far."""

    gate: Gate
    ticks: Ticks
    so_far: Measure | None  # by all answers, at 95%; None until every stratum has two
    decided: Measure | None  # by the answers of the last look
    uses: Uses | None
    next_look: int | None  # answers after which the verdict is looked at again; None: everything was asked

    @property
    def verdict_line(self) -> str:
        """The verdict as one line that is easy to search for."""
        if self.decided is None or self.uses is None:
            return f"VERDICT {self.gate.verdict} ticks={self.ticks.answered}"
        return verdict_line(self.gate.verdict, self.decided, self.uses.number)


def rule(people: Sequence[Answers], queries: Sequence[str]) -> Ruling:
    """The verdict by the answers of one or more people; recorded as a use if it is a look."""
    header, ticks = people[0].header, merged(people)
    skipped = {query for person in people for query, answer in person.latest.items() if answer.answer == "skip"}
    used = merged([_until_look(person) for person in people])
    used = used if is_possible(_strata(header, used)) else {}  # too few of a stratum, as most of it was skipped
    uses = _record(header, used, queries) if used else None
    decided = _measure(header, used, corrected_level(uses.number)) if uses else None
    so_far = _measure(header, ticks) if is_possible(_strata(header, ticks)) else None
    shown = _summary(people, header, ticks, skipped - set(ticks), used)
    due = _looks_of(people[0])
    following = next((look for look in due if look > len(people[0].answered)), None)
    return Ruling(_gate(decided, shown, due), shown, so_far, decided, uses, following)


def looks(different: int) -> list[int]:
    """After how many answers the verdict is looked at: 30, 60, 120 ..., and when everything was asked.

    The last look needs half as many answers again as the one before it: a look has its price.
    """
    doubled = [look for turn in range(32) if LAST * (look := FIRST_LOOK * 2**turn) <= different]
    return [*doubled, different] if are_enough(different) else []


def _looks_of(person: Answers) -> list[int]:
    skipped = len(person.latest) - len(person.answered)
    return looks(sum(person.header.sizes) - skipped)


def _until_look(person: Answers) -> Answers:
    """The answers of a person up to their last look: every answer that a verdict rests on is looked at together."""
    reached = max((look for look in _looks_of(person) if look <= len(person.answered)), default=0)
    kept = set(person.answered[:reached])
    return replace(person, given=tuple(answer for answer in person.given if answer.query in kept))


def _strata(header: Header, ticks: Mapping[str, Tick], side: str = "value") -> list[Stratum]:
    return [
        Stratum(size, tuple(getattr(tick, side) for tick in ticks.values() if tick.stratum == number))
        for number, size in enumerate(header.sizes)
    ]


def _record(header: Header, used: Mapping[str, Tick], queries: Sequence[str]) -> Uses:
    """Every set of answers that is looked at is a use; looking at the same ones again is the same use."""
    content = json.dumps([(query, tick.value) for query, tick in used.items()], ensure_ascii=False)
    digest = hashlib.sha256(content.encode()).hexdigest()
    return record_use([asking_task(queries)], f"{header.fitted} {digest}", header.base)


def _measure(header: Header, ticks: Mapping[str, Tick], level: float = LEVEL) -> Measure:
    """The share of all queries for which people prefer the base's first result, and the fitted model's."""
    gain = estimate(_strata(header, ticks), header.queries, level)
    before, after = (estimate(_strata(header, ticks, side), header.queries) for side in ("base", "fitted"))
    return Measure(
        name="ticks",
        label=LABEL,
        part="deciding",
        metric="preference",
        items=len(ticks),
        before=before.value,
        before_low=max(before.low, 0.0),
        before_high=before.high,
        after=after.value,
        after_low=max(after.low, 0.0),
        after_high=after.high,
        difference=gain.value,
        low=gain.low,
        high=gain.high,
        p=gain.p,
        level=level,
        clusters=len(ticks),
        effective=gain.effective,
        documents=header.documents,
        of_documents=header.of_documents,
    )


def _summary(
    people: Sequence[Answers], header: Header, ticks: Mapping[str, Tick], skipped: set[str], used: Mapping[str, Tick]
) -> Ticks:
    different, shown = sum(header.sizes), used or ticks
    possible = is_possible(_strata(header, shown))
    base, fitted = (
        estimate(_strata(header, shown, side), different).value if possible else 0.0 for side in ("base", "fitted")
    )
    return Ticks(
        len(people), len(ticks), len(skipped), len(used), header.queries, different, base, fitted, agreement(people)
    )


def _gate(decided: Measure | None, ticks: Ticks, due: Sequence[int]) -> Gate:
    if decided is None:
        reason = f"{ticks.answered} of {due[0] if due else FIRST_LOOK} ticks: too few for a verdict."
        return Gate(NO_DIFFERENCE, reason)
    gate = judge(decided, decided.difference)
    return Gate(gate.verdict, f"{gate.reason} {sentence(decided, ticks)}")


def sentence(decided: Measure, ticks: Ticks) -> str:
    """What the estimate means, in plain words."""
    return (
        f"Of the {ticks.different:,} of {ticks.queries:,} held-out queries for which the two models return a different "
        f"first result, people prefer the fitted model's for {ticks.fitted:.0f}% and the base's for {ticks.base:.0f}%; "
        f"over all queries that is {decided.difference:+.1f} points, {100 * decided.level:.4g}% interval "
        f"{decided.low:+.1f} to {decided.high:+.1f}."
    )


def with_ticks(result: FitResult, people: Sequence[Answers], folder: Path, output: Path, *, force: bool) -> FitResult:
    """The result of a fit with what people ticked: they decide where no labels did, and are shown beside labels."""
    refuse_other_fit(people, result)
    ruling = rule(people, read_queries(folder))
    if result.label_free and ruling.decided:
        return _decided(result, ruling, output, force=force)
    measure = ruling.decided or ruling.so_far
    watched = (replace(measure, part="watched"),) if measure else ()
    unread = () if ruling.decided else (f"The ticks decide nothing yet: {ruling.gate.reason}",)
    warnings = (*result.warnings, *unread)
    return replace(result, measures=(*result.measures, *watched), ticks=ruling.ticks, warnings=warnings)


def _decided(result: FitResult, ruling: Ruling, output: Path, *, force: bool) -> FitResult:
    """The ticks in the place of what decided before."""
    assert ruling.decided is not None
    assert ruling.uses is not None
    better, written = ruling.gate.passed, ruling.gate.passed or force
    others = tuple(
        replace(measure, part="watched") if measure.part == "deciding" else measure for measure in result.measures
    )
    outcome = "won" if better else f"{BEST}, {'forced' if written else 'not written'}"
    return replace(
        result,
        verdict=ruling.gate.verdict,
        reason=ruling.gate.reason,
        model=str(output) if written else None,
        forced=written and not better,
        measures=(ruling.decided, *others),
        total=ruling.decided,
        uses=ruling.uses.number,
        test_sha256=ruling.uses.sha256,
        power=None,
        believe="",
        runs=tuple(replace(run, verdict=outcome) if run.is_best else run for run in result.runs),
        ticks=ruling.ticks,
        advice=_advice(ruling),
    )


def _advice(ruling: Ruling) -> tuple[Advice, ...]:
    if ruling.gate.passed:
        return ()
    if ruling.gate.verdict == "worse":
        return (Advice(AdviceKind.PEOPLE_KEEP_BASE),)
    if ruling.next_look is None:
        return (Advice(AdviceKind.ALL_TICKED),)
    return (Advice(AdviceKind.TICK_MORE, ruling.next_look),)
