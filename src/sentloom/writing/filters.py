"""Which candidates are kept: pure functions of the text and its score, so that no model is needed."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sentloom.errors import InputError
from sentloom.writing.prompts import Kind

KEPT = ""  # the reason of a row that no filter dropped
REASONS = ("empty", "equal", "score", "source words", "words", "substring", "repeated")  # in the order they are tried


class Candidate(NamedTuple):
    """A sentence that was written for another one; `score` is the probability of the judgement that its kind needs."""

    source: int
    source_text: str
    kind: Kind
    candidate: int
    text: str
    score: float


class Filtering(BaseModel):
    """What a candidate must satisfy. Words are separated by spaces."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    threshold: float = Field(default=0.9, ge=0, le=1)  # the smallest score, the paper's alpha
    source_words: int = Field(default=0, ge=0)  # the smallest number of words in the source
    words: int = Field(default=0, ge=0)  # the smallest number of words in the candidate
    substring: bool = False  # neither may contain the other without its last character
    drop_equal: bool = True  # not equal to its source, ignoring case and spaces


PRESETS = {
    "default": Filtering(),
    "paper": Filtering(drop_equal=False),
    "official-code": Filtering(source_words=8, words=5, substring=True, drop_equal=False),
}


def chosen_filters(preset: str, **changes: float | bool | None) -> Filtering:
    """A preset with the changes that are not None."""
    if preset not in PRESETS:
        raise InputError("preset", f"no preset {preset!r}", f"one of {', '.join(PRESETS)}", "choose one of these")
    return PRESETS[preset].model_copy(update={name: value for name, value in changes.items() if value is not None})


def verdict(row: Candidate, by: Filtering) -> str:
    """The first filter that drops a candidate, or `KEPT`."""
    source, text = row.source_text, row.text
    if not text.strip():
        return "empty"
    if by.drop_equal and _folded(text) == _folded(source):
        return "equal"
    if not row.score >= by.threshold:  # a non-finite score is dropped too
        return "score"
    if len(source.split()) < by.source_words:
        return "source words"
    if len(text.split()) < by.words:
        return "words"
    if by.substring and (text[:-1] in source or source[:-1] in text):
        return "substring"
    return KEPT


def verdicts(rows: Sequence[Candidate], by: Filtering) -> list[str]:
    """The reasons for all candidates of one source; of equal texts of one kind, only the first is kept."""
    seen: set[tuple[Kind, str]] = set()
    reasons = []
    for row in rows:
        reason = verdict(row, by)
        reasons.append("repeated" if reason == KEPT and (row.kind, row.text) in seen else reason)
        seen |= {(row.kind, row.text)} if reason == KEPT else set()
    return reasons


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
