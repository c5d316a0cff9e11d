"""What requests may contain, and what is answered: the fields of OpenAI's API, and ours."""

import json
import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, WithJsonSchema

from sentloom.encoder.prompts import Role
from sentloom.serving.refusals import NOT_OBJECT, Refusal, invalid, unknown_field

TOKEN_IDS = (
    "{name} holds token ids, which only their own tokenizer could turn back into text. Send the texts themselves; "
    "in LangChain, pass check_embedding_ctx_length=False to OpenAIEmbeddings."
)
# A string, or the start of a value beside others: what a parser would have to build.
VALUE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")
STRING_OR_LIST = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}


def _as_texts(given: Any, field: ValidationInfo) -> Any:
    """A string as a list of one; token ids, empty lists and what cannot be UTF-8 are refused."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list):
        raise ValueError("Expected a string or a list of strings.")
    if not given:
        raise ValueError("The list of texts is empty. Send at least one text.")
    if all(map(_are_token_ids, given)):
        raise ValueError(TOKEN_IDS.format(name=field.field_name))
    for place, one in enumerate(given):
        if not isinstance(one, str):
            raise ValueError(f"Text {place} is not a string. Send a string or a list of strings.")
        if SURROGATE.search(one):
            raise ValueError(f"Text {place} has half of a surrogate pair, which is no character. Remove it.")
    return given


def _are_token_ids(given: Any) -> bool:
    """Whether this is an id, or the ids of a text."""
    return type(given) is int or (isinstance(given, list) and all(type(one) is int for one in given))


Texts = Annotated[list[str], BeforeValidator(_as_texts), WithJsonSchema(STRING_OR_LIST)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(None, description="A name from /v1/models. By default the first.")


R = TypeVar("R", bound=_Request)


def parse(kind: type[R], body: bytes, content_type: str, max_values: int) -> R:
    """The fields of a body. One with too many values is refused before it is parsed, which would take seconds."""
    if not _is_json(content_type):
        raise Refusal(422, NOT_OBJECT)
    if _has_more(body, max_values):
        message = f"The JSON has more than {max_values:,} values. Send fewer texts, and texts instead of token ids."
        raise Refusal(413, message)
    try:
        content = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise Refusal(400, "The body is not valid JSON in UTF-8.") from None
    if not isinstance(content, dict):
        raise Refusal(422, NOT_OBJECT)
    if unknown := content.keys() - kind.model_fields:
        raise unknown_field(min(unknown))
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise invalid(first["loc"], first) from None


def _is_json(content_type: str) -> bool:
    """Whether a type is JSON: a form of another web site can send others without asking."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _has_more(body: bytes, values: int) -> bool:
    """Whether JSON has more values than this; no more of it is read than needed to know."""
    return any(number > values for number, _ in enumerate(VALUE.finditer(body), 1))


class EmbeddingRequest(_Request):
    """Texts to encode."""

    input: Texts
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = Field(None, ge=1, description="Cut vectors to this size, if the model was trained for it.")
    role: Role = Field("symmetric", description="Which of the model's prompts to use.")
    user: str | None = Field(None, description="Ignored; part of OpenAI's API.")


class SimilarityRequest(_Request):
    """Texts to compare: every one in `a` with every one in `b`, or with the others in `a`."""

    a: Texts
    b: Texts | None = None


class SearchRequest(_Request):
    """Queries over the corpus."""

    query: Texts
    k: int = Field(10, ge=1, le=1000)


class Usage(BaseModel):
    """Tokens that were computed, with special tokens and prompts."""

    prompt_tokens: int
    total_tokens: int


class Embedding(BaseModel):
    """One vector: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingResponse(BaseModel):
    """Vectors in the order of the texts."""

    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: Usage


class SimilarityResponse(BaseModel):
    """Cosines, one row per text in `a`."""

    object: Literal["similarity"] = "similarity"
    model: str
    similarities: list[list[float]]
    usage: Usage


class FoundText(BaseModel):
    """A text of the corpus: its row, where it came from, its cosine with the query."""

    row: int
    place: str
    score: float
    text: str


class SearchResponse(BaseModel):
    """For each query the nearest texts, nearest first."""

    object: Literal["list"] = "list"
    model: str
    data: list[list[FoundText]]
    usage: Usage


class ModelCard(BaseModel):
    """A served model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["sentloom"] = "sentloom"
    dimension: int
    dimensions: list[int] = Field(description="What vectors can be truncated to.")
    max_tokens: int
    roles: list[str] = Field(description="Roles that have a prompt of their own.")


class ModelList(BaseModel):
    """All served models; `texts` is the size of the corpus."""

    object: Literal["list"] = "list"
    data: list[ModelCard]
    texts: int


class ProblemDetail(BaseModel):
    """Why a request was refused."""

    message: str
    type: str
    param: str | None
    code: str | None


class Problem(BaseModel):
    """An error as OpenAI's clients read it."""

    error: ProblemDetail
