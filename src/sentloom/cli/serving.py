"""The command `serve`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentloom.cli.common import (
    ColumnOption,
    ColumnsOption,
    DeviceOption,
    EncodingOption,
    PrecisionOption,
    ShapeOption,
    SheetOption,
    show,
)
from sentloom.errors import MissingPart

if TYPE_CHECKING:
    from sentloom.cli.vectors import SearchTarget
    from sentloom.serving.models import Corpus, ServedModel
    from sentloom.serving.service import Service


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="embedded, a model folder or a hub name; NAME=MODEL sets the name that requests use.",
        ),
    ],
    corpus: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="The texts that /v1/search and the page search. By default none."),
    ] = None,
    reranker: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The cross-encoder of /v1/rerank: reranker, a folder or a hub name. By default none.",
        ),
    ] = None,
    column: ColumnOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Other machines need an API key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the server; 0 picks a free one.")] = 8080,
    api_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with the API key. By default $SENTLOOM_API_KEY, if it is set."),
    ] = None,
    max_inputs: Annotated[int, typer.Option(min=1, help="The most texts in a request.")] = 4096,
    max_body: Annotated[int, typer.Option(min=1, help="The largest body of a request, in megabytes.")] = 4,
    queue: Annotated[
        int,
        typer.Option(
            min=1, metavar="REQUESTS", help="How many requests may wait or be encoded before others get status 429."
        ),
    ] = 80,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Serve models over HTTP: OpenAI-compatible embeddings, similarity, search, re-ranking, and a page to try."""
    try:
        from sentloom.serving.app import build_app
        from sentloom.serving.server import bind, run
    except ImportError as error:
        raise MissingPart("serve", f"{error.name} is not installed", "", "pip install 'sentloom[serve]'") from None
    from sentloom.cli.vectors import ground
    from sentloom.encoder.device import pack_workers, worker_count
    from sentloom.serving.batcher import Batcher, BatchLimits
    from sentloom.serving.models import ServedReranker, load_models, tokenise_in_own_threads, warm_up
    from sentloom.serving.server import limit_memory
    from sentloom.serving.service import Service, ServiceLimits, check_address, read_key

    limit_memory()
    tokenise_in_own_threads()
    key = read_key(api_key_file)
    check_address(host, key)
    loaded = load_models(models, device, precision)
    how = {"sheet": sheet, "encoding": encoding}
    searched = _corpus(ground(corpus, column, shape, columns, how), loaded) if corpus else None
    where = loaded[0].encoder.device
    workers = worker_count(where)
    with bind(host, port) as listener, pack_workers(where) as executor:
        limits = BatchLimits(requests=queue)
        warm_up(loaded, executor, workers, limits.batch_tokens)
        service = Service(
            models={model.name: model for model in loaded},
            batcher=Batcher(executor, workers, limits),
            corpus=searched,
            reranker=ServedReranker.load(reranker) if reranker else None,
            key=key,
            limits=ServiceLimits(max_body=max_body << 20, max_inputs=max_inputs),
        )
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        run(build_app(service), service, listener, lambda: _announce(address, service))
        show(f"Stopped. Requests answered: {service.answered:,}; cut off: {service.cut_off:,}.")


def _corpus(target: "SearchTarget", models: "list[ServedModel]") -> "Corpus":
    """The texts of a file, ready to be searched by every model; their vectors are cached."""
    from sentloom.cli.vectors import cached_vectors
    from sentloom.search.system import Index
    from sentloom.serving.models import Corpus

    texts = target.texts.to_pylist()
    indexes = {
        model.name: Index(texts, cached_vectors(model.encoder, target.texts), model.encoder.system).ready()
        for model in models
    }
    return Corpus(texts, target.place, indexes)


def _announce(address: str, service: "Service") -> None:
    for model in service.models.values():
        show(f"{model.name}: {model.encoder}")
        if service.corpus and model.encoder.system.recorded():
            show(f"{model.name} searches by {model.encoder.system}")
    show(f"Serving at {address} ({'with an API key' if service.key else 'this machine only'}). Stop with Ctrl-C.")
