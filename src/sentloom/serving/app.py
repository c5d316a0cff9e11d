"""The endpoints: OpenAI's for embeddings and models, ours for similarity, search, health, metrics and the page."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Executor
from importlib.resources import files
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import orjson
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from sentloom import __version__
from sentloom.classify.classifier import Classifier
from sentloom.encoder.formats.static import StaticBackbone
from sentloom.encoder.heads import check_cut, cut
from sentloom.encoder.tokens import Prompt, Role
from sentloom.errors import InputError
from sentloom.search.vectors import normalised
from sentloom.serving.batcher import QueueClosed, QueueFull, Vectors, WaitedTooLong
from sentloom.serving.gate import GONE, App, Gate, queue_full
from sentloom.serving.models import ServedModel, ServedReranker, Tokenised
from sentloom.serving.schema import (
    ClassifyRequest,
    ClassifyResponse,
    EmbeddingRequest,
    EmbeddingResponse,
    LabelledText,
    ModelCard,
    ModelList,
    Problem,
    RankedDocument,
    Refusal,
    RerankRequest,
    RerankResponse,
    SearchRequest,
    SearchResponse,
    SimilarityRequest,
    SimilarityResponse,
    TeiRank,
    TeiRerankRequest,
    Usage,
    parse,
    refused,
)
from sentloom.serving.service import Service

INLINE = 4096  # bytes that are parsed and characters that are tokenised in the event loop; more in a thread
PIECE = 1 << 16  # characters that are tokenised before it is the turn of another request
ROWS_AT_ONCE = 64  # vectors written between two chances for other requests
SHOWN_POSITIONS = 100  # of texts, in a header or a message
REPORT_STYLES = "report/templates/page.css"  # the page has the colours and the type of the report
PAGE = {
    "/": ("text/html", ["serving/page/index.html"]),
    "/page.css": ("text/css", [REPORT_STYLES, "serving/page/page.css"]),
    "/page.js": ("text/javascript", ["serving/page/page.js"]),
}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": why}
    for status, why in {
        400: "The body is not JSON",
        401: "The API key is missing or wrong",
        404: "No such model, or no corpus",
        408: "The body did not arrive in time",
        413: "Too many bytes, values, texts or cells",
        422: "A field is not valid",
        429: "The queue is full; see Retry-After",
        500: "The model gave no usable vector",
        503: "Shutting down, waited too long, or the model gives other vectors than it should",
    }.items()
}
T = TypeVar("T")
R = TypeVar("R", ClassifyRequest, EmbeddingRequest, SimilarityRequest, SearchRequest, RerankRequest, TeiRerankRequest)


def _takes(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of a body that the endpoint parses itself."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


router = APIRouter()


def build_app(service: Service) -> App:
    """The whole application, with its gate."""
    app = FastAPI(title="sentloom", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.service = service
    app.include_router(router)
    for path, (kind, parts) in PAGE.items():
        app.add_api_route(path, _static(kind, parts), methods=["GET"], include_in_schema=False)
    for error in (RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(error, refused)
    return Gate(app, service)


@router.post(
    "/v1/embeddings", response_model=EmbeddingResponse, responses=REFUSALS, openapi_extra=_takes(EmbeddingRequest)
)
async def embeddings(request: Request) -> Response:
    """Encode texts. A large request is split into batches; the header `sentloom-truncated` lists truncated texts."""
    service, asked = _service(request), await _read(request, EmbeddingRequest)
    model = service.model(asked.model)
    if asked.dimensions is not None:
        _check_dimensions(model, asked.dimensions)
    vectors, tokenised = await _encode(request, model, asked.input, asked.role)
    if asked.dimensions is not None:
        vectors = cut(vectors, asked.dimensions, model.encoder.unit_length)
    _check_usable(model, vectors, "input")
    parts = _embedding_parts(model.name, vectors, tokenised.tokens, asked.encoding_format == "base64")
    headers = _truncated_header(tokenised)
    if len(vectors) <= ROWS_AT_ONCE:
        return _json(b"".join(parts), headers)
    return StreamingResponse(_in_turn(parts), media_type="application/json", headers=headers)


@router.post(
    "/v1/similarity", response_model=SimilarityResponse, responses=REFUSALS, openapi_extra=_takes(SimilarityRequest)
)
async def similarity(request: Request) -> Response:
    """Cosines of every text in `a` with every text in `b`, or of the texts in `a` with each other."""
    service, asked = _service(request), await _read(request, SimilarityRequest)
    model, others = service.model(asked.model), asked.b or []
    if len(asked.a) * len(others or asked.a) > service.limits.max_cells:
        raise Refusal(413, f"The matrix has more than {service.limits.max_cells:,} cells. Compare fewer texts.")
    vectors, tokenised = await _encode(request, model, [*asked.a, *others], "symmetric")
    _check_usable(model, vectors, "a" if asked.b is None else "a and b")
    unit = normalised(vectors)
    left, right = unit[: len(asked.a)], unit[len(asked.a) :] if others else unit
    cosines = np.clip(left @ right.T, -1, 1)  # rounding may lead beyond
    answer = {"object": "similarity", "model": model.name, "similarities": cosines, "usage": _usage(tokenised)}
    return _json(_dump(answer), _truncated_header(tokenised))


@router.post("/v1/search", response_model=SearchResponse, responses=REFUSALS, openapi_extra=_takes(SearchRequest))
async def search(request: Request) -> Response:
    """The best texts of the corpus for each query, by vectors and by whatever the model's folder says beside them."""
    service, asked = _service(request), await _read(request, SearchRequest)
    model, corpus = service.model(asked.model), service.searched()
    if len(asked.query) * asked.k > service.limits.max_found:
        most = service.limits.max_found
        raise Refusal(
            413, f"{len(asked.query):,} queries with k {asked.k} have more than {most:,} results. Send fewer."
        )
    vectors, tokenised = await _encode(request, model, asked.query, "query")
    _check_usable(model, vectors, "query")
    searching = _in_thread(service.searchers, corpus.search, model.name, asked.query, vectors, asked.k)
    nearest = await _unless_gone(request, searching)
    usage = Usage(prompt_tokens=tokenised.tokens, total_tokens=tokenised.tokens)
    answer = SearchResponse(model=model.name, data=nearest, usage=usage)
    return _json(answer.model_dump_json().encode(), _truncated_header(tokenised))


@router.post("/v1/classify", response_model=ClassifyResponse, responses=REFUSALS, openapi_extra=_takes(ClassifyRequest))
async def classify(request: Request) -> Response:
    """The label of each text, its probability, and whether to leave the text to people."""
    service, asked = _service(request), await _read(request, ClassifyRequest)
    model = service.model(asked.model)
    classifier = _classifier(model, asked.column)
    vectors, tokenised = await _encode(request, model, asked.input, "symmetric")
    _check_usable(model, vectors, "input")
    answers = await _unless_gone(request, _in_thread(service.searchers, classifier.predict, vectors))
    data = [
        LabelledText(index=at, label=said.label, probability=said.probability, abstain=said.abstain or not text.strip())
        for at, (text, said) in enumerate(zip(asked.input, answers, strict=True))
    ]
    usage = Usage(prompt_tokens=tokenised.tokens, total_tokens=tokenised.tokens)
    answer = ClassifyResponse(model=model.name, data=data, usage=usage)
    return _json(answer.model_dump_json().encode(), _truncated_header(tokenised))


@router.post("/v1/rerank", response_model=RerankResponse, responses=REFUSALS, openapi_extra=_takes(RerankRequest))
async def rerank(request: Request) -> Response:
    """Documents by how relevant they are to a query, in the form of Cohere and Jina."""
    service, asked = _service(request), await _read(request, RerankRequest)
    reranker = service.ranking(asked.model)
    logits = await _rerank(request, reranker, asked.query, asked.documents)
    results = [
        RankedDocument(
            index=row,
            relevance_score=_share(logits[row]),
            document={"text": asked.documents[row]} if asked.return_documents else None,
        )
        for row in _falling(logits)[: asked.top_n]
    ]
    answer = RerankResponse(id=str(uuid4()), model=reranker.name, results=results)
    return _json(answer.model_dump_json(exclude_none=True).encode())


@router.post("/rerank", response_model=list[TeiRank], responses=REFUSALS, openapi_extra=_takes(TeiRerankRequest))
async def rerank_as_tei(request: Request) -> Response:
    """The same in the form of Text Embeddings Inference."""
    service, asked = _service(request), await _read(request, TeiRerankRequest)
    logits = await _rerank(request, service.ranking(asked.model), asked.query, asked.texts)
    answer: list[dict[str, Any]] = [
        {"index": row, "score": float(logits[row]) if asked.raw_scores else _share(logits[row])}
        | ({"text": asked.texts[row]} if asked.return_text else {})
        for row in _falling(logits)
    ]
    return _json(_dump(answer))


def _falling(logits: Vectors) -> list[int]:
    """The rows, the highest first; equal ones stay in order."""
    rows: list[int] = np.argsort(-logits, kind="stable").tolist()
    return rows


def _share(logit: float) -> float:
    """A logit as a number from 0 to 1."""
    return float(1 / (1 + np.exp(-np.float64(logit))))


async def _rerank(request: Request, reranker: ServedReranker, query: str, texts: list[str]) -> Vectors:
    """The logits of texts, unless the queue is full or the client goes away."""
    service = _service(request)
    if len(texts) > service.limits.max_reranked:
        most = service.limits.max_reranked
        raise Refusal(413, f"{len(texts):,} documents are more than {most:,}. Send the best ones of a search.")

    async def scored() -> Vectors:
        with service.batcher.admitted():
            return await _in_thread(service.rankers, reranker.score, query, texts)

    try:
        return await _unless_gone(request, scored())
    except QueueFull as full:
        raise queue_full(full.retry_after) from None
    except QueueClosed:
        raise Refusal(503, "The server is shutting down. Try again.", retry_after="1") from None


@router.get("/v1/models")
async def models(request: Request) -> ModelList:
    """The served models, the first of which is the default."""
    service = _service(request)
    texts = len(service.corpus.texts) if service.corpus else 0
    return ModelList(data=[_card(model) for model in service.models.values()], texts=texts)


@router.get("/v1/models/{name:path}", responses={404: REFUSALS[404]})
async def one_model(name: str, request: Request) -> ModelCard:
    """One of the served models."""
    return _card(_service(request).model(name))


@router.get("/health", responses={503: {"description": "A model does not give the expected vector"}})
async def health(request: Request) -> Response:
    """Encode a probe with each model and compare it with the vector that it must get."""
    service = _service(request)
    cosines = await service.health()
    healthy = all((cosine or 0.0) >= service.models[name].probe.least for name, cosine in cosines.items())
    shown = {name: cosine if cosine is None else round(cosine, 6) for name, cosine in cosines.items()}
    body = {"status": "ok" if healthy else "failing", "cosine_of_probe": shown}
    return _json(_dump(body), status=200 if healthy else 503)


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    return Response(_service(request).metrics.page(), media_type="text/plain; version=0.0.4")


def _static(kind: str, parts: list[str]) -> Any:
    content = b"".join((files("sentloom") / part).read_bytes() for part in parts)

    async def page() -> Response:
        return Response(content, media_type=kind, headers=PAGE_HEADERS)

    return page


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _read(request: Request, kind: type[R]) -> R:
    """The fields of a request; a large body is parsed in a thread."""
    service, body = _service(request), await request.body()
    arguments = kind, body, request.headers.get("content-type", ""), service.limits.max_values
    return parse(*arguments) if len(body) <= INLINE else await _in_thread(service.readers, parse, *arguments)


def _card(model: ServedModel) -> ModelCard:
    encoder = model.encoder
    return ModelCard(
        id=model.name,
        created=model.created,
        dimension=encoder.dimension,
        dimensions=list(encoder.dimensions),
        max_tokens=encoder.tokens.max_length,
        roles=sorted(role for role, prompt in encoder.prompts.items() if prompt != Prompt()),
    )


def _classifier(model: ServedModel, column: str | None) -> Classifier:
    columns = {own.column: own for own in reversed(model.classifiers)}
    if not columns:
        raise Refusal(404, f"{model.name} has no classifier. Serve a model that was fitted to texts with labels.")
    if column is not None and column not in columns:
        message = f"{model.name} has no labels {column}. Choose one of: {', '.join(columns)}."
        raise Refusal(422, message, param="column")
    return columns[column] if column is not None else model.classifiers[0]


def _check_dimensions(model: ServedModel, dimensions: int) -> None:
    try:
        check_cut(model.encoder, dimensions)
    except InputError as error:
        message = f"{model.name} was not trained for {dimensions} dimensions. Expected {error.expected}."
        raise Refusal(422, message, param="dimensions") from None


async def _encode(request: Request, model: ServedModel, texts: list[str], role: Role) -> tuple[Vectors, Tokenised]:
    """The vectors of texts, unless the queue is full or the client goes away."""
    service = _service(request)
    if len(texts) > service.limits.max_inputs:
        raise Refusal(413, f"{len(texts):,} texts are more than {service.limits.max_inputs:,}. Send several requests.")
    await service.check_vectors(model)
    try:
        vectors, tokenised = await _unless_gone(request, _queued(service, model, texts, role))
    except QueueFull as full:
        raise queue_full(full.retry_after) from None
    except (QueueClosed, WaitedTooLong):
        raise Refusal(503, "The server is too busy or shutting down. Try again.", retry_after="1") from None
    service.metrics.encoded(model.name, len(texts), tokenised.tokens, len(tokenised.truncated))
    return vectors, tokenised


async def _queued(service: Service, model: ServedModel, texts: list[str], role: Role) -> tuple[Vectors, Tokenised]:
    """Tokenise and encode texts, with a place in the queue from the start."""
    with service.batcher.admitted():
        tokenised = await _tokenised(service, model, texts, role)
    return await service.batcher.submit(model.encode, tokenised.ids), tokenised


async def _tokenised(service: Service, model: ServedModel, texts: list[str], role: Role) -> Tokenised:
    """Token ids of texts. Requests take turns, a piece at a time: each has at most one in the threads' queue."""
    if sum(map(len, texts)) <= INLINE:
        return model.tokenize(texts, role)
    tokenised = Tokenised([], [])
    try:
        async with asyncio.timeout(service.batcher.limits.queue_wait):
            for piece in _pieces(texts):
                tokenised += await _in_thread(service.tokenisers, model.tokenize, piece, role)
    except TimeoutError:
        raise WaitedTooLong from None
    return tokenised


def _pieces(texts: list[str]) -> Iterator[list[str]]:
    """Some texts at a time, that have together about as many characters as a piece may."""
    piece, size = [], 0
    for text in texts:
        piece.append(text)
        size += len(text)
        if size >= PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


async def _in_thread(threads: Executor, run: Callable[..., T], *arguments: Any) -> T:
    """Run a function in a thread; if this is cancelled before a thread is free, it never runs."""
    return await asyncio.get_running_loop().run_in_executor(threads, run, *arguments)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Wait for work; if the client goes away, drop what has not started."""
    await request.body()
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.receive())  # after the body, the only message is that the client has gone
    gone.add_done_callback(lambda _: working.cancel())
    try:
        return await working
    except asyncio.CancelledError:
        if gone.done():
            raise Refusal(GONE, "The client has gone.") from None
        raise
    finally:
        gone.cancel()


def _check_usable(model: ServedModel, vectors: Vectors, sent: str) -> None:
    """Refuse to send vectors that are not finite or are zero; a static model has none for texts of unknown tokens."""
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1))
    if len(broken) and not vectors[broken].any() and isinstance(model.encoder.backbone, StaticBackbone):
        places = ", ".join(map(str, broken[:SHOWN_POSITIONS]))
        message = f"{model.name} knows no token of these texts of {sent}, by position: {places}. Leave them out."
        raise Refusal(422, message, param=sent, code="no_known_token")
    if len(broken):
        message = f"The model gave no usable vector for text {broken[0]}: it is zero or not finite. Check the model."
        raise Refusal(500, message, code="unusable_vector")


def _embedding_parts(model: str, vectors: Vectors, tokens: int, as_base64: bool) -> Iterator[bytes]:
    """The answer in parts, so that a large one does not hold up the others."""
    head = {"object": "list", "model": model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    yield _dump(head)[:-1] + b',"data":['
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        rows = [
            {"object": "embedding", "index": start + at, "embedding": _base64(vector) if as_base64 else vector}
            for at, vector in enumerate(vectors[start : start + ROWS_AT_ONCE])
        ]
        yield (b"," if start else b"") + _dump(rows)[1:-1]
    yield b"]}"


def _base64(vector: Vectors) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


async def _in_turn(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(0)


def _truncated_header(tokenised: Tokenised) -> dict[str, str]:
    """The positions of truncated texts, if any."""
    positions = tokenised.truncated
    more = ["..."] if len(positions) > SHOWN_POSITIONS else []
    return {"sentloom-truncated": ",".join([*map(str, positions[:SHOWN_POSITIONS]), *more])} if positions else {}


def _usage(tokenised: Tokenised) -> dict[str, int]:
    return {"prompt_tokens": tokenised.tokens, "total_tokens": tokenised.tokens}


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def _json(body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> Response:
    return Response(body, status, headers, "application/json")
