"""Which candidates are kept: pure functions of the text and its score, so that no model is needed."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sentloom.data.hygiene.languages import LEAST_AMONG, LEAST_SCORE, identify
from sentloom.data.hygiene.near_duplicates import SHINGLE
from sentloom.methods.registry import read_presets
from sentloom.search.words import words_of
from sentloom.writing.writer import Kind

KEPT = ""  # the reason of a row that no filter dropped
# In the order they are tried.
REASONS = (
    *("empty", "unfinished", "equal", "copied", "language", "score", "round trip", "vague", "cross-encoder"),
    *("source words", "words", "most words", "substring", "near-duplicate", "repeated"),
)
FEWEST_WORDS = 4  # a shorter text is too short to tell its language, and a name rather than a copy
RELEVANT = 0.0  # the score of a cross-encoder that means a probability of one half


class Candidate(NamedTuple):
    """A text that was written for another one.

    `score` is the probability of the judgement that its kind needs; of a query, 1 / the rank of its source.
    """

    source: int
    source_text: str
    kind: Kind
    candidate: int
    text: str
    score: float
    finished: bool = True
    style: str = ""
    bm25_rank: int = 0
    encoder_rank: int = 0
    cross_encoder: float | None = None
    tokens_read: int = 0
    tokens_written: int = 0


class Filtering(BaseModel):
    """What a candidate must satisfy. Words are separated by spaces."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    threshold: float = Field(default=0.9, ge=0, le=1)  # the smallest probability of the judgement, the paper's alpha
    round_trip: int = Field(default=1, ge=0)  # a query must find its source among this many results; 0: it need not
    drop_vague: bool = True  # neither of the two searches may rank the source lower than that
    cross_encoder: float | None = None  # the smallest score of a query, if there is one; None: RELEVANT
    copied: float = Field(default=0.8, gt=0, le=1)  # share of a query or paraphrase in one run of the source's words
    near_duplicates: float = Field(default=0.8, gt=0, le=1)  # Jaccard index with an earlier text of the source and kind
    language: bool = True  # it must be in the language of its source
    finished: bool = True  # it must have ended by itself
    source_words: int = Field(default=0, ge=0)  # the smallest number of words in the source
    words: int = Field(default=0, ge=0)  # the smallest number of words in the candidate
    most_words: int = Field(default=0, ge=0)  # the greatest; 0: no limit
    substring: bool = False  # neither may contain the other without its last character
    drop_equal: bool = True  # not equal to its source, ignoring case and spaces


PRESETS = {name: Filtering(**values) for name, values in read_presets(__file__).items()}


def verdict(row: Candidate, by: Filtering) -> str:
    """The first filter that drops a candidate by itself, or `KEPT`."""
    return _form(row, by) or _judgement(row, by) or _length(row, by)


def _form(row: Candidate, by: Filtering) -> str:
    source, text = row.source_text, row.text
    if not text.strip():
        return "empty"
    if by.finished and not row.finished:
        return "unfinished"
    if by.drop_equal and _folded(text) == _folded(source):
        return "equal"
    if by.copied < 1 and row.kind in ("query", "paraphrase") and _copies(text, source, by.copied):
        return "copied"
    return "language" if by.language and not same_language(text, source) else KEPT


def _judgement(row: Candidate, by: Filtering) -> str:
    """A non-finite score is dropped too."""
    if row.kind != "query":
        return KEPT if row.score >= by.threshold else "score"
    if by.round_trip and not row.score >= 1 / by.round_trip:
        return "round trip"
    if by.round_trip and by.drop_vague and max(row.bm25_rank, row.encoder_rank) > by.round_trip:
        return "vague"
    least = RELEVANT if by.cross_encoder is None else by.cross_encoder
    return KEPT if row.cross_encoder is None or row.cross_encoder >= least else "cross-encoder"


def _length(row: Candidate, by: Filtering) -> str:
    source, text = row.source_text, row.text
    if len(source.split()) < by.source_words:
        return "source words"
    if len(text.split()) < by.words:
        return "words"
    if by.most_words and len(text.split()) > by.most_words:
        return "most words"
    return "substring" if by.substring and (text[:-1] in source or source[:-1] in text) else KEPT


def verdicts(rows: Sequence[Candidate], by: Filtering) -> list[str]:
    """The reasons for all candidates of one source; of texts of one kind that are nearly equal, the first is kept."""
    kept: dict[Kind, list[str]] = {}
    reasons = []
    for row in rows:
        reason = verdict(row, by)
        earlier = kept.setdefault(row.kind, [])
        if reason == KEPT and row.text in earlier:
            reason = "repeated"
        elif reason == KEPT and _resembles(row.text, earlier, by.near_duplicates):
            reason = "near-duplicate"
        if reason == KEPT:
            earlier.append(row.text)
        reasons.append(reason)
    return reasons


def _resembles(text: str, earlier: Sequence[str], least: float) -> bool:
    return least < 1 and any(resemblance(text, other) >= least for other in earlier)


def _copies(text: str, source: str, most: float) -> bool:
    return len(words_of(text)) >= FEWEST_WORDS and copied_share(text, source) > most


def copied_share(text: str, source: str) -> float:
    """The longest run of a text's words that is also in the source, as a share of the text."""
    words, others = words_of(text), words_of(source)
    longest, ends = 0, [0] * (len(others) + 1)  # run that ends at each word of the source, and at this word of the text
    for word in words:
        ends = [0, *(before + 1 if word == other else 0 for before, other in zip(ends, others, strict=False))]
        longest = max(longest, *ends)
    return longest / len(words) if words else 0.0


def resemblance(first: str, second: str) -> float:
    """The Jaccard index of the five-character shingles of two texts, ignoring case."""
    these, those = (_shingles(_folded(text)) for text in (first, second))
    return len(these & those) / len(these | those)


def _shingles(text: str) -> set[str]:
    return {text[at : at + SHINGLE] for at in range(max(1, len(text) - SHINGLE + 1))}


def same_language(text: str, source: str) -> bool:
    """Whether a text may be in the language of its source; short ones always may."""
    if min(len(words_of(text)), len(words_of(source))) < FEWEST_WORDS:
        return True
    best = next(iter(identify(text)), None)
    likely = {code for code, score in identify(source) if score >= LEAST_AMONG}
    return best is None or best[1] < LEAST_SCORE or not likely or best[0] in likely


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
