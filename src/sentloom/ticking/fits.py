"""The questions of a fit: its models search its corpus for its test rows."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sentloom.encoder.shared import shared_encoder
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.fitting.compare_fits import tested_encoder
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
    queries, searched, memory = read_queries(folder), read_searched(folder), open_memory(folder / "measured")
    models = shared_encoder(result.base), tested_encoder(folder, result)
    base, fitted = (encoded(model, queries, searched, memory) for model in models)
    questions = make_questions(queries, searched.texts, base, fitted, searched.of)
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


def refuse_too_few(questions: Questions, folder: Path) -> None:
    """Refuse models that hardly differ: so few answers show nothing."""
    if (different := len(questions.asked)) < LEAST_CLUSTERS:
        problem = f"its models return a different first result for {different} of {questions.total:,} held-out queries"
        fix = "use the base: a model that finds the same texts is no better; or fit longer, or to more rows"
        raise InputError(str(folder), problem, f"at least {LEAST_CLUSTERS}, to show a difference", fix)
