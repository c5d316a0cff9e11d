"""Mask-fill: a share of the tokens is masked, and a masked language model says what stands there."""

from collections.abc import Iterator, Sequence
from random import Random

import torch
from transformers import AutoModelForMaskedLM

from sentloom.encoder.text_models import load_model
from sentloom.encoder.workers import pack_workers
from sentloom.errors import ModelError
from sentloom.views.maker import seed_for
from sentloom.views.settings import MaskFill

REVISION = 1  # raised when the same model would give other views
WANTED = "a masked language model with its head"


class MaskFiller:
    """Fills all masks of a text at once with the likeliest tokens; one text at a time, so company changes nothing."""

    shard = 128

    def __init__(self, settings: MaskFill) -> None:
        if settings.model == "embedded":
            found = "the embedded encoder, which has no such head"
            raise ModelError("mask-fill", found, WANTED, "name a folder or a hub model, such as roberta-base")
        self._all = load_model(settings.model, AutoModelForMaskedLM, WANTED)
        if self._all.tokenizer.mask_token_id is None:
            raise ModelError(settings.model, "a tokenizer without a mask token", WANTED, "choose another model")
        self._settings = settings
        self.identity = f"mask-fill {REVISION} {self._all.sha256} share {settings.share} seed {settings.seed}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """The texts with filled masks; where the model says what stood there, the text as it was."""
        with pack_workers(self._all.model.device) as executor:
            yield from executor.map(self._fill, texts)

    def _fill(self, text: str) -> str:
        coded = self._all.tokenizer(text, return_special_tokens_mask=True)
        special, _ = self._all.cut(coded["special_tokens_mask"])
        head, rest = self._all.cut(coded["input_ids"])  # what is too long for the model stays as it is
        places = [place for place, is_special in enumerate(special) if not is_special]
        if not places:
            return text
        count = max(1, round(self._settings.share * len(places)))
        chosen = sorted(Random(seed_for(self._settings.seed, text)).sample(places, count))
        filled = list(head)
        for place, token in zip(chosen, self._likeliest(head, chosen), strict=True):
            filled[place] = token
        if filled == head:
            return text
        return str(self._all.tokenizer.decode([*filled, *rest], skip_special_tokens=True)).strip()

    @torch.inference_mode()
    def _likeliest(self, ids: list[int], masked: list[int]) -> list[int]:
        """The likeliest ordinary token at each masked place."""
        row = torch.tensor([ids], device=self._all.model.device)
        row[0, masked] = self._all.tokenizer.mask_token_id
        logits = self._all.model(row).logits[0, masked]  # (masked, vocabulary)
        logits[:, self._all.tokenizer.all_special_ids] = -torch.inf
        return list(logits.argmax(-1).tolist())
