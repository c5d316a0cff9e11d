"""The prompts, as data: another language is another `Wording`."""

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, model_validator

Kind = Literal["entailment", "contradiction"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Wording(BaseModel):
    """The text around the sentences that the model reads, and its answers; the defaults are GenSE's Table 1.

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

    def around(self, kind: Kind) -> tuple[str, str]:
        """The text before and after the source sentence."""
        return self.entailment if kind == "entailment" else self.contradiction
