"""Settings for making views: one pydantic model per kind, for recipes and the command line."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sentloom.errors import InputError, checked

Share = Annotated[float, Field(gt=0, le=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pivot(_Settings):
    """Two translation models, each a folder or a hub name: into another language, and back."""

    forward: str
    backward: str


class BackTranslation(_Settings):
    """Translation into another language and back. Without a pivot: the embedded translator, by way of Portuguese.

    One pivot pairs the original with its back-translation; two pivots pair their two back-translations.
    """

    kind: Literal["back-translation"] = "back-translation"
    pivots: tuple[Pivot, ...] = Field(default=(), max_length=2)
    decoding: Literal["beam", "sampling"] = "beam"
    beams: int = Field(default=5, ge=1)
    top_k: int = Field(default=0, ge=0)  # 0: no limit
    top_p: float = Field(default=1.0, gt=0, le=1)
    seed: int = 0  # for sampling

    @model_validator(mode="after")
    def _no_idle_setting(self) -> "BackTranslation":
        """Refuse settings that have no effect with the chosen decoding."""
        fields = type(self).model_fields
        changed = {name for name in fields if getattr(self, name) != fields[name].default}
        used = {"beam": {"beams"}, "sampling": {"top_k", "top_p", "seed"}}[self.decoding] if self.pivots else set()
        if idle := sorted(changed - used - ({"pivots", "decoding"} if self.pivots else set())):
            how = f"decoding {self.decoding}" if self.pivots else "the embedded translator, whose decoding is fixed"
            raise ValueError(f"{', '.join(idle)} has no effect with {how}")
        return self


class Synonyms(_Settings):
    """Replacement of some words by others of the same WordNet synset."""

    kind: Literal["synonyms"] = "synonyms"
    share: Share = 0.3  # of the words
    seed: int = 0


class MaskFill(_Settings):
    """Replacement of some tokens by the predictions of a masked language model (a folder or a hub name)."""

    kind: Literal["mask-fill"] = "mask-fill"
    model: str
    share: Share = 0.2  # of the tokens
    seed: int = 0


class ReadyPairs(_Settings):
    """A file of pairs made elsewhere: the original and its view."""

    kind: Literal["file"] = "file"
    file: str
    missing: Literal["refuse", "skip"] = "refuse"  # what to do with originals that the file lacks


class Entailment(_Settings):
    """Pairs of an NLI data set: each premise with the hypotheses that it entails."""

    kind: Literal["entailment"] = "entailment"


class Neighbours(_Settings):
    """Pairs of neighbouring passages of a document."""

    kind: Literal["neighbours"] = "neighbours"
    sentences: int = Field(default=2, ge=1)  # of a passage


class Spans(_Settings):
    """Pairs of two random spans of a document, each of a share of its words between two limits."""

    kind: Literal["spans"] = "spans"
    pairs: int = Field(default=1, ge=1)  # per document
    shortest: Share = 0.1
    longest: Share = 0.5
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _a_range(self) -> "Spans":
        if self.shortest > self.longest:
            raise ValueError("shortest is more than longest")
        return self


class Sentences(_Settings):
    """Pairs of a sentence and the document that it is from."""

    kind: Literal["sentences"] = "sentences"
    pairs: int = Field(default=2, ge=1)  # per document, at most
    seed: int = Field(default=0, ge=0)


ViewSettings = Annotated[
    Union[BackTranslation, Synonyms, MaskFill, ReadyPairs, Entailment, Neighbours, Spans, Sentences],  # noqa: UP007 - pydantic's own form
    Field(discriminator="kind"),
]
# By name: back-translation, synonyms ...
KINDS = {model.model_fields["kind"].default: model for model in get_args(get_args(ViewSettings)[0])}


def view_settings(values: Mapping[str, Any]) -> ViewSettings:
    """Validate plain values, including `kind`, and return the settings; an error names the invalid value."""
    kind = values.get("kind")
    if kind not in KINDS:
        raise InputError("views", f"kind {kind!r} does not exist", f"one of {', '.join(KINDS)}", "correct the kind")
    return checked(KINDS[kind], f"views, {kind}", values)


def parse_pivot(text: str) -> Pivot:
    """Parse the option `--pivot forward,backward`."""
    forward, comma, backward = (part.strip() for part in text.partition(","))
    if not (forward and comma and backward):
        problem = f"{text!r} does not name two models"
        raise InputError("--pivot", problem, "forward,backward", "give two folders or hub names, with a comma between")
    return Pivot(forward=forward, backward=backward)
