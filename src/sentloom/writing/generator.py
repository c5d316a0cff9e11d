"""Write sentences that follow from a given one, and sentences that contradict it (GenSE, section 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.encoder.loading import quiet
from sentloom.encoder.workers import pack_workers
from sentloom.errors import InputError
from sentloom.writing.instances import padded
from sentloom.writing.prompts import KINDS, Kind
from sentloom.writing.sampling import Draw, Sampling, sampling_keys
from sentloom.writing.scorer import Pair, by_length, judge
from sentloom.writing.text_to_text import Ids, TextToText

BackendName = Literal["transformers", "ctranslate2", "ctranslate2-int8"]
BACKENDS: tuple[BackendName, ...] = get_args(BackendName)


@dataclass(frozen=True)
class WritingRequest:
    """A text to write: the `candidate`-th one of a kind for the sentence in row `source` of the raw data."""

    source: int
    text: str
    kind: Kind
    candidate: int


class Backend(Protocol):
    """What runs the model. Results are in the order of the requests."""

    name: str

    def write(self, requests: Sequence[WritingRequest]) -> list[str]:
        """One text per request; it may be empty."""

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """P(true) (n,) of each premise and hypothesis."""


class TransformersBackend:
    """transformers' `generate`, with its cached keys and values, on batches of similar length.

    A text is determined by the seed, its source's row, its kind and its number, whatever else is in the batch.
    """

    name = "transformers"

    def __init__(self, model: TextToText, sampling: Sampling, batch: int = 64) -> None:
        self._model, self._sampling, self._batch = model.eval(), sampling, batch

    def write(self, requests: Sequence[WritingRequest]) -> list[str]:
        """See `Backend`."""
        ids = writing_ids(self._model, requests)
        batches = by_length(ids, self._batch)
        texts = np.empty(len(requests), dtype=object)
        with quiet(), pack_workers(self._model.model.device) as executor:
            written = executor.map(
                lambda rows: self._written([ids[i] for i in rows], [requests[i] for i in rows]), batches
            )
            for rows, part in zip(batches, written, strict=True):
                texts[rows] = part
        return list(texts)

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """See `Backend`."""
        return judge(self._model, pairs, self._batch)

    @torch.inference_mode()
    def _written(self, ids: Sequence[Ids], requests: Sequence[WritingRequest]) -> list[str]:
        sources, read = padded(ids, self._model)
        names = [(request.source, KINDS.index(request.kind), request.candidate) for request in requests]
        draw = [] if self._sampling.greedy else [Draw(self._sampling, sampling_keys(self._sampling.seed, names))]
        generate: Any = self._model.model.generate
        out = generate(
            sources,
            attention_mask=read,
            max_new_tokens=self._sampling.max_tokens,
            do_sample=False,  # the scores already contain the random draw
            num_beams=1,
            logits_processor=draw,
        )
        return [self._model.text_of(row) for row in out.tolist()]


def writing_ids(model: TextToText, requests: Sequence[WritingRequest]) -> list[Ids]:
    """What the model reads for each request."""
    prompts = {kind: model.prompt_ids(kind) for kind in KINDS}
    sentences = model.bare([request.text for request in requests])
    return [
        model.framed(prompts[request.kind], [sentence]) for request, sentence in zip(requests, sentences, strict=True)
    ]


def open_backend(name: str, model: TextToText, sampling: Sampling, cache: Path) -> Backend:
    """The backend of this name. `cache` is the folder for CTranslate2's converted models."""
    from sentloom.writing.ctranslate import CTranslate2Backend  # here, since it builds on this file

    if name not in BACKENDS:
        raise InputError("backend", repr(name), f"one of {', '.join(BACKENDS)}", "name one of these")
    if name == "transformers":
        return TransformersBackend(model, sampling)
    return CTranslate2Backend(model, sampling, cache, "int8" if name == "ctranslate2-int8" else "float32")
