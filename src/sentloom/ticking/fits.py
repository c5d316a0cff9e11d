"""The questions of a fit: its models search its corpus for its test rows."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.encoder.shared import shared_encoder
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.fitting.advice import tick_advice
from sentloom.fitting.compare_fits import tested_encoder
from sentloom.fitting.result import FitResult
from sentloom.progress import OutOfTime, deadline
from sentloom.ticking.answers import Answers, Header, header_for
from sentloom.ticking.queries import encoded, read_fit, read_queries, read_searched
from sentloom.ticking.questions import Questions, make_questions
from sentloom.ticking.verdict import refuse_other_fit


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
    refuse_too_few(questions, folder)
    header = header_for(questions, *(model.fingerprint() for model in models))
    for one in others:
        if one.header.subject != header.subject:
            raise InputError(
                one.name, "its answers are about other questions", "answers about this fit", "leave it out"
            )
    return FitQuestions(questions, header, queries, without_labels(result.command), result.label_free)


def without_labels(command: str) -> str:
    """The command of a fit without the files of answers that it was given."""
    parts = shlex.split(command)
    named = {place for place, part in enumerate(parts) if part == "--labels"}
    return shlex.join(part for place, part in enumerate(parts) if not {place, place - 1} & named)


def _questions(folder: Path, queries: Sequence[str], models: Sequence[Encoder]) -> Questions:
    searched, memory = read_searched(folder), open_memory(folder / "measured")
    base, fitted = (encoded(model, queries, searched, memory) for model in models)
    return make_questions(queries, searched.texts, base, fitted, searched.of)


def are_too_few(questions: Questions) -> bool:
    """Whether the models hardly differ: so few answers show nothing."""
    return len(questions.asked) < LEAST_CLUSTERS


def refuse_too_few(questions: Questions, folder: Path) -> None:
    """Refuse models that hardly differ."""
    if are_too_few(questions):
        problem = f"its models return a different first result for {len(questions.asked)} of {questions.total:,}"
        fix = "use the base: a model that finds the same texts is no better; or fit longer, or to more rows"
        expected = f"at least {LEAST_CLUSTERS}, to show a difference"
        raise InputError(str(folder), f"{problem} held-out queries", expected, fix)


def with_true_advice(result: FitResult, folder: Path, seconds: float) -> FitResult:
    """The result, advising to tick only if there is enough to tick; that is found out in at most so many seconds."""
    advice = tick_advice(folder)
    if advice not in result.advice:
        return result
    try:
        with deadline(seconds):
            models = shared_encoder(result.base), tested_encoder(folder, result)
            questions = _questions(folder, read_queries(folder), models)
    except OutOfTime:
        true = f"{advice} There was no time left to see whether they disagree on the {LEAST_CLUSTERS} that this needs."
    else:
        true = _nothing_to_decide(questions) if are_too_few(questions) else advice
    return replace(result, advice=tuple(true if line == advice else line for line in result.advice))


def _nothing_to_decide(questions: Questions) -> str:
    return (
        f"There is nothing to decide: base and model return a different first result for {len(questions.asked):,} of "
        f"{questions.total:,} held-out queries, and {LEAST_CLUSTERS} are needed to show a difference."
    )
