"""Text-to-text models, such as T5: an encoder reads the prompt, a decoder writes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, GenerationConfig, LogitsProcessor

from sentloom.encoder.text_models import TextModel
from sentloom.writing.language_model import Ids, LanguageModel, head_at, padded, refuse_ids
from sentloom.writing.prompts import Wording
from sentloom.writing.sampling import Draw


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
        wanted_ids, wanted = padded(targets, self)
        shifted = torch.cat([torch.full_like(wanted_ids[:, :1], self.start), wanted_ids[:, :-1]], dim=1)
        with head_at(self, wanted):
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
