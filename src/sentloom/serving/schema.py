"""What requests may contain, what is answered, and why a request is refused: OpenAI's fields and errors, and ours."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from starlette.exceptions import HTTPException

from sentloom.encoder.tokens import Role
from sentloom.errors import plain_words

TOKEN_IDS = (
    "{name} holds token ids, which only their own tokenizer could turn back into text. Send the texts themselves; "
    "in LangChain, pass check_embedding_ctx_length=False to OpenAIEmbeddings."
)
SURROGATE = re.compile("[\ud800-\udfff]")
STRING_OR_LIST = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}


def _as_texts(value: Any, field: ValidationInfo) -> Any:
    """A string as a list of one; token ids, empty lists and what cannot be UTF-8 are refused."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise ValueError("Expected a string or a list of strings.")
    if not value:
        raise ValueError("The list of texts is empty. Send at least one text.")
    if all(map(_are_token_ids, value)):
        raise ValueError(TOKEN_IDS.format(name=field.field_name))
    for place, text in enumerate(value):
        if not isinstance(text, str):
            raise ValueError(f"Text {place} is not a string. Send a string or a list of strings.")
        if SURROGATE.search(text):
            raise ValueError(f"Text {place} has half of a surrogate pair, which is no character. Remove it.")
    return value


def _are_token_ids(value: Any) -> bool:
    """Whether this is an id, or the ids of a text."""
    return type(value) is int or (isinstance(value, list) and all(type(number) is int for number in value))


Texts = Annotated[list[str], BeforeValidator(_as_texts), WithJsonSchema(STRING_OR_LIST)]


def _as_documents(value: Any, field: ValidationInfo) -> Any:
    """Texts, or objects with the key text."""
    if isinstance(value, list):
        value = [part["text"] if isinstance(part, dict) and part.keys() == {"text"} else part for part in value]
    return _as_texts(value, field)


Query = Annotated[str, Field(min_length=1)]
Documents = Annotated[list[str], BeforeValidator(_as_documents), WithJsonSchema(STRING_OR_LIST)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(None, description="A name from /v1/models. By default the first.")


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


class ClassifyRequest(_Request):
    """Texts to label."""

    input: Texts
    column: str | None = Field(None, description="Which label column, if the model has several. By default the first.")


class SearchRequest(_Request):
    """Queries over the corpus."""

    query: Texts
    k: int = Field(10, ge=1, le=1000)


class RerankRequest(_Request):
    """A query and the documents to rank, as in the APIs of Cohere and Jina."""

    query: Query
    documents: Documents
    top_n: int | None = Field(None, ge=1, description="How many to return. By default all.")
    return_documents: bool = Field(False, description="Whether results have the texts.")


class TeiRerankRequest(_Request):
    """A query and the texts to rank, as in Text Embeddings Inference."""

    query: Query
    texts: Documents
    raw_scores: bool = Field(False, description="Whether scores are logits instead of numbers from 0 to 1.")
    return_text: bool = False
    truncate: bool = Field(True, description="Ignored: pairs that are too long are always truncated.")


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


class LabelledText(BaseModel):
    """The label of one text, its probability, and whether to leave the text to people."""

    index: int
    label: str
    probability: float
    abstain: bool


class ClassifyResponse(BaseModel):
    """Labels in the order of the texts."""

    object: Literal["list"] = "list"
    model: str
    data: list[LabelledText]
    usage: Usage


class SimilarityResponse(BaseModel):
    """Cosines, one row per text in `a`."""

    object: Literal["similarity"] = "similarity"
    model: str
    similarities: list[list[float]]
    usage: Usage


class FoundText(BaseModel):
    """A text of the corpus: its row, where it came from, its score (docs/search.md)."""

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


class RankedDocument(BaseModel):
    """A document: its place in the request, how relevant it is (0 to 1), and its text if that was asked for."""

    index: int
    relevance_score: float
    document: dict[str, str] | None = None


class RerankResponse(BaseModel):
    """Documents, the most relevant first."""

    id: str
    model: str
    results: list[RankedDocument]


class TeiRank(BaseModel):
    """A text as Text Embeddings Inference ranks it."""

    index: int
    score: float
    text: str | None = None


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


KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 500: "server_error"} | {
    503: "overloaded_error"
}
NOT_OBJECT = "The body is not a JSON object. Send one, with the header Content-Type: application/json."
NOWHERE = {
    404: "There is nothing at {path}. /openapi.json lists what there is.",
    405: "{path} does not take {method}. /openapi.json lists what there is.",
}
# A string, or the start of a value beside others: what a parser would have to build.
VALUE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)
R = TypeVar("R", bound=_Request)


class Refusal(HTTPException):
    """A status, and a sentence that says what is wrong and what to change."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, **headers: str
    ) -> None:
        """Set the answer; a header such as `retry_after` is written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, message, headers=named)
        self.param, self.code = param, code

    def response(self) -> JSONResponse:
        """The answer."""
        kind = KINDS.get(self.status_code, "invalid_request_error")
        error = {"message": self.detail, "type": kind, "param": self.param, "code": self.code}
        return JSONResponse({"error": error}, self.status_code, dict(self.headers or {}))


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


def unknown_field(name: str) -> Refusal:
    """A field that the request does not have."""
    shown = name[:200].encode("utf-8", "replace").decode()  # JSON can have half of a surrogate pair
    return Refusal(422, f"{shown} is not a known field. Remove it or correct its name.", param=shown)


def invalid(location: tuple[str | int, ...], first: Mapping[str, Any]) -> Refusal:
    """One fault of a request, in plain words."""
    place = ".".join(part for part in location if isinstance(part, str))
    if first["type"] == "missing":
        message = f"{place or 'The body'} is missing. Add it."
    elif first["type"] == "value_error":
        message = str(first["ctx"]["error"])
    elif not place:
        message = NOT_OBJECT
    else:
        message = f"{place} is not valid. Expected {plain_words(first['msg'])}."
    return Refusal(422, message, param=place or None)


async def refused(request: Request, error: Exception) -> JSONResponse:
    """The answer to a request for which a Refusal, or an error of FastAPI's own, was raised."""
    if isinstance(error, Refusal):
        return error.response()
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return invalid(first["loc"][1:], first).response()
    if isinstance(error, HTTPException):
        nowhere, path = NOWHERE.get(error.status_code), request.url.path[:200]
        message = nowhere.format(path=path, method=request.method) if nowhere else error.detail
        return Refusal(error.status_code, message, **(error.headers or {})).response()
    return Refusal(500, "The server failed. Its log says why.").response()
