"""Mask-fill: a share of the tokens is masked and filled in by a masked language model."""

from collections.abc import Iterator, Sequence
from random import Random

import torch
from transformers import AutoModelForMaskedLM

from sentloom.encoder.device import pack_workers
from sentloom.encoder.loading import load_for_inference
from sentloom.encoder.locate import catalogue_entry
from sentloom.errors import ModelError
from sentloom.writing.views.pairs import seed_for
from sentloom.writing.views.settings import MaskFill

REVISION = 1  # increased when the same model would produce different views
EXPECTED = "a masked language model with its head"


class MaskFiller:
    """Fills all masks of a text at once with the likeliest tokens, one text at a time, independent of the batch."""

    shard = 128

    def __init__(self, settings: MaskFill) -> None:
        if entry := catalogue_entry(settings.model):
            problem = f"{entry.name} of the catalogue cannot fill masks"
            raise ModelError("mask-fill", problem, EXPECTED, "name a folder or a hub model, such as roberta-base")
        self._all = load_for_inference(settings.model, AutoModelForMaskedLM, EXPECTED)
        if self._all.tokenizer.mask_token_id is None:
            raise ModelError(settings.model, "the tokenizer has no mask token", EXPECTED, "choose another model")
        self._settings = settings
        self.identity = f"mask-fill {REVISION} {self._all.sha256} share {settings.share} seed {settings.seed}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the texts with filled masks; a text is unchanged if the model predicts the original tokens."""
        with pack_workers(self._all.model.device) as executor:
            yield from executor.map(self._fill, texts)

    def _fill(self, text: str) -> str:
        coded = self._all.tokenizer(text, return_special_tokens_mask=True)
        special, _ = self._all.cut(coded["special_tokens_mask"])
        head, rest = self._all.cut(coded["input_ids"])  # text beyond the model's maximum length stays unchanged
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
        """Return the likeliest non-special token at each masked position."""
        row = torch.tensor([ids], device=self._all.model.device)
        row[0, masked] = self._all.tokenizer.mask_token_id
        logits = self._all.model(row).logits[0, masked]  # (masked, vocabulary)
        logits[:, self._all.tokenizer.all_special_ids] = -torch.inf
        return list(logits.argmax(-1).tolist())
