"""Write and judge with transformers, whatever the family of the model, and the text-to-text family, such as T5.

As in GenSE, section 3.2: greedily, or with samples that depend on the text alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, GenerationConfig, LogitsProcessor

from sentloom.encoder.device import pack_workers
from sentloom.encoder.loading import TextModel, quiet
from sentloom.errors import InputError
from sentloom.writing.judges import by_length, judge
from sentloom.writing.language_model import Ids, LanguageModel, head_at, padded, refuse_ids
from sentloom.writing.sampling import Draw, Sampling, sampling_keys
from sentloom.writing.writer import KINDS, Kind, Pair, SourceText, Wording, Writer, WritingPrompt, Written

BackendName = Literal["transformers", "ctranslate2", "ctranslate2-int8"]
BACKENDS: tuple[BackendName, ...] = get_args(BackendName)


def open_backend(name: str, model: LanguageModel, sampling: Sampling, cache: Path) -> Writer:
    """The writer that runs a model with this backend. `cache` is the folder for CTranslate2's converted models."""
    from sentloom.writing.ctranslate import open_ctranslate2  # here, since it builds on this file

    if name not in BACKENDS:
        raise InputError(
            "backend", f"there is no backend {name!r}", f"one of {', '.join(BACKENDS)}", "name one of these"
        )
    if name == "transformers":
        return TransformersWriter(model, sampling)
    return open_ctranslate2(model, sampling, cache, "int8" if name == "ctranslate2-int8" else "float32")


class TransformersWriter:
    """Batches of similar length; what all prompts of a call begin with is computed once.

    A text is determined by the seed, its source's row, its kind and its number, whatever else is in the batch.
    """

    name = "transformers"

    def __init__(self, model: LanguageModel, sampling: Sampling, batch: int | None = None) -> None:
        self._model, self._sampling, self._batch = model.eval(), sampling, batch or model.BATCH
        self._prefixes: dict[tuple[int, ...], Any] = {}

    def write(self, sources: Sequence[SourceText], kind: Kind, prompt: WritingPrompt) -> list[Written]:
        """See `Writer`."""
        ids = writing_ids(self._model, sources, prompt)
        batches = by_length(ids, self._batch)
        texts = np.empty(len(sources), dtype=object)
        with quiet(), pack_workers(self._model.model.device) as executor:
            prefix = self._prefix(self._model.opening(self._model.prompt_ids(prompt)))
            written = executor.map(
                lambda rows: self._written([ids[i] for i in rows], [sources[i] for i in rows], kind, prefix), batches
            )
            for rows, part in zip(batches, written, strict=True):
                texts[rows] = part
        return list(texts)

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """See `Writer`."""
        return judge(self._model, pairs, self._batch)

    def _prefix(self, ids: Ids) -> Any:
        key = tuple(ids)
        if key not in self._prefixes:
            self._prefixes[key] = self._model.prefix(ids)
        return self._prefixes[key]

    @torch.inference_mode()
    def _written(self, ids: Sequence[Ids], sources: Sequence[SourceText], kind: Kind, prefix: Any) -> list[Written]:
        names = [(source.row, KINDS.index(kind), source.candidate) for source in sources]
        draw = None if self._sampling.greedy else Draw(self._sampling, sampling_keys(self._sampling.seed, names))
        out = self._model.decode(ids, self._sampling.length, draw, prefix)
        return [as_written(self._model, read, written) for read, written in zip(ids, out, strict=True)]


def writing_ids(model: LanguageModel, sources: Sequence[SourceText], prompt: WritingPrompt) -> list[Ids]:
    """What the model reads for each source."""
    parts = model.prompt_ids(prompt)
    sentences = model.sentences([source.text for source in sources])
    return [model.framed(parts, [sentence]) for sentence in sentences]


def as_written(model: LanguageModel, read: Ids, written: Ids) -> Written:
    """What the tokens say."""
    return Written(model.text_of(written), model.finished(written), len(read), len(written))


class TextToText(LanguageModel):
    """Its own or GenSE's wording, since T5 was pretrained on prompts of this form."""

    AUTO = AutoModelForSeq2SeqLM
    WANTED = "a text-to-text model, such as T5"

    @staticmethod
    def untrained_wording() -> Wording:
        """GenSE's."""
        return Wording()

    @classmethod
    def check_ids(cls, loaded: TextModel) -> None:
        """The decoder starts with a token of its own."""
        refuse_ids(loaded, "eos_token_id", "pad_token_id", "decoder_start_token_id")

    def prepare(self) -> None:
        """Ignore the checkpoint's own decoding settings, such as a forced first token."""
        self.learned = self.wording
        config = self.model.config
        self.model.generation_config = GenerationConfig(
            pad_token_id=config.pad_token_id,
            eos_token_id=config.eos_token_id,
            decoder_start_token_id=config.decoder_start_token_id,
        )

    @property
    def start(self) -> int:
        """The token that the decoder starts with."""
        return int(self.model.config.decoder_start_token_id)

    def decode(self, rows: Sequence[Ids], longest: int, draw: Draw | None, prefix: Any = None) -> list[Ids]:
        """With transformers' `generate`, which keeps the keys and values of the decoder."""
        sources, read = padded(rows, self)
        generate: Any = self.model.generate
        out = generate(
            sources,
            attention_mask=read,
            max_new_tokens=longest,
            do_sample=False,  # the scores already contain the random draw
            num_beams=1,
            logits_processor=[_Noise(draw)] if draw else [],
        )
        return [_until(row[1:], self.end) for row in out.tolist()]

    def target_logits(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> Tensor:
        """The decoder reads the target, one token behind."""
        ids, read = padded(sources, self)
        target_ids, places = padded(targets, self)
        shifted = torch.cat([torch.full_like(target_ids[:, :1], self.start), target_ids[:, :-1]], dim=1)
        with head_at(self, places):
            logits: Tensor = self.model(input_ids=ids, attention_mask=read, decoder_input_ids=shifted).logits
        return logits

    def first_logits(self, sources: Sequence[Ids], prefix: Any = None) -> Tensor:
        """What the decoder says after its start token."""
        ids, read = padded(sources, self)
        start = ids.new_full((len(ids), 1), self.start)
        run = self.model(input_ids=ids, attention_mask=read, decoder_input_ids=start, use_cache=False)
        first: Tensor = run.logits[:, 0]
        return first


class _Noise(LogitsProcessor):  # type: ignore[misc]
    """A draw as a step of `generate`."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The decoder's start token comes first."""
        return self._draw.noisy(scores, input_ids.shape[1] - 1)


def _until(ids: Ids, end: int) -> Ids:
    """Up to the end token: `generate` pads shorter texts."""
    return ids[: ids.index(end) + 1] if end in ids else ids
