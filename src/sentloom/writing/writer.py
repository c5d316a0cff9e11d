"""What a writer is, and what it is told: the kinds of text, and the prompts of each, which are data in prompts.yaml."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, model_validator

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.errors import InputError

Kind = Literal["entailment", "contradiction", "query", "paraphrase"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NLI_KINDS: tuple[Kind, ...] = ("entailment", "contradiction")  # GenSE's
MOST_SHOTS = 5  # of the user
ANY_LANGUAGE = "the language of the text"
SOURCE = "Text"  # the label of the source in a prompt with shots
ROLES = ("user", "assistant")

Shots = tuple[tuple[str, str], ...]  # a source, and what is written for it
Pair: TypeAlias = tuple[str, str]  # a premise and a hypothesis


class Wording(BaseModel):
    """The text around the sentences that a trained model reads, and its answers; the defaults are GenSE's Table 1.

    Each part is tokenised by itself, as in the official code, and only sentences are ever cut.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    entailment: tuple[str, str] = ('Write two sentences that are entailment. Sentence 1: "', '" Sentence 2:')
    contradiction: tuple[str, str] = ('Write two sentences that are contradictory. Sentence 1: "', '" Sentence 2:')
    judge: tuple[str, str, str] = ('if "', '", does this mean that "', '"? true or false')
    true: str = "true"
    false: str = "false"

    @model_validator(mode="after")
    def _told_apart(self) -> "Wording":
        if self.entailment == self.contradiction:
            raise ValueError("the prompts for entailment and contradiction are the same")
        if self.true == self.false:
            raise ValueError("true and false are the same word")
        return self

    def prompt(self, kind: Kind) -> "WritingPrompt":
        """The learned prompt of one of GenSE's kinds."""
        return WritingPrompt(parts=self.entailment if kind == "entailment" else self.contradiction)


class WritingPrompt(BaseModel):
    """What is said around a source: `parts` that the model has learned, or an instruction with shots."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    style: str = ""  # of a query: question, keywords, title, statement
    label: str = ""  # what comes before the text to write: "Question"
    instruction: str = ""
    shots: Shots = ()
    parts: tuple[str, str] | None = None

    @property
    def around(self) -> tuple[str, str]:
        """The text before and after the source, for a model that continues it."""
        if self.parts:
            return self.parts
        shown = "".join(f"{SOURCE}: {source}\n{self.label}: {target}\n\n" for source, target in self.shots)
        return f"{self.instruction}\n\n{shown}{SOURCE}: ", f"\n{self.label}:"

    def messages(self, source: str) -> list[dict[str, str]]:
        """The same for a chat: the instruction, and the shots as earlier turns."""
        if self.parts:
            return [_message("user", source.join(self.parts))]
        turns = [_message(role, text) for shot in self.shots for role, text in zip(ROLES, shot, strict=True)]
        return [_message("system", f"{self.instruction} Answer with nothing else."), *turns, _message("user", source)]


@dataclass(frozen=True)
class SourceText:
    """A text to write for: a row of the raw data, for the `candidate`-th time."""

    row: int
    text: str
    candidate: int = 0


@dataclass(frozen=True)
class Written:
    """A text, which may be empty, whether it ended by itself, and how many tokens were read and written for it."""

    text: str
    finished: bool = True
    tokens_read: int = 0
    tokens_written: int = 0
    chance: float | None = None  # of a judgement: P(true) against P(false), if an endpoint states token probabilities


class Writer(Protocol):
    """What writes and judges. Results are in the order of what was asked."""

    name: str  # of the backend

    def write(self, sources: Sequence[SourceText], kind: Kind, prompt: WritingPrompt) -> list[Written]:
        """One text of this kind per source."""

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """P(true) (n,) that each hypothesis follows from its premise."""


def prompts_for(
    kinds: Sequence[Kind], language: str | None, shots: Dataset | None = None, learned: Wording | None = None
) -> dict[Kind, tuple[WritingPrompt, ...]]:
    """The prompts of each kind, in the order of KINDS; several for a kind with styles.

    `shots` are the user's own examples, which replace ours; `learned` are the prompts of a trained model.
    """
    prompts: dict[Kind, tuple[WritingPrompt, ...]] = {}
    for kind in (kind for kind in KINDS if kind in kinds):
        if shots is None and learned and kind in NLI_KINDS:
            prompts[kind] = (learned.prompt(kind),)
        else:
            own = None if shots is None else user_shots(shots, kind)
            prompts[kind] = tuple(_in_language(prompt, language) for prompt in _shown(kind, own))
    return prompts


def _shown(kind: Kind, own: Shots | None) -> list[WritingPrompt]:
    content = _content()
    if own is None:
        return [WritingPrompt(**values) for values in content[kind]]
    return [WritingPrompt(**{**content["own"].get(kind, content[kind][0]), "shots": own})]


def _in_language(prompt: WritingPrompt, language: str | None) -> WritingPrompt:
    said = prompt.instruction.replace("{language}", language or ANY_LANGUAGE)
    return prompt.model_copy(update={"instruction": said})


def user_shots(data: Dataset, kind: Kind) -> Shots:
    """The first rows of the user's pairs or triplets as shots: a query is written for the text that it finds."""
    columns = {"query": ("positive", "anchor"), "contradiction": ("anchor", "negatives")}
    source, target = columns.get(kind, ("anchor", "positive"))
    needed = Shape.TRIPLETS if kind == "contradiction" else Shape.PAIRS
    if data.shape not in (needed, Shape.TRIPLETS):
        problem = f"its shape is {data.shape}"
        raise InputError(data.files[0], problem, f"{needed}, as examples of kind {kind}", "give other shots")
    cells = data.take(range(min(len(data), MOST_SHOTS)))
    targets = [cell[0] if isinstance(cell, list | tuple) else cell for cell in cells[target]]
    return tuple((_line(a), _line(b)) for a, b in zip(cells[source], targets, strict=True))


def _line(text: str) -> str:
    return " ".join(text.split())


def shown_judgements() -> Wording:
    """The wording for a causal model that was not trained to judge: examples come first."""
    start, middle, end = Wording().judge
    shown = [
        f"{start}{premise}{middle}{hypothesis}{end}: {verdict}\n"
        for premise, hypothesis, verdict in _content()["judge"]
    ]
    return Wording(judge=("".join(shown) + start, middle, f"{end}:"))


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("prompts.yaml").read_text("utf-8"))
    return content


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
