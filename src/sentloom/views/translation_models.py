"""Back-translation with two translation models, such as Marian's: into another language, and back."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM

from sentloom.encoder.loading import quiet
from sentloom.encoder.workers import pack_workers
from sentloom.views.maker import seed_for
from sentloom.views.models import ViewModel, load_model
from sentloom.views.pieces import pieces
from sentloom.views.settings import BackTranslation, Pivot

REVISION = 1  # raised when the same models would give other views


class PivotTranslator:
    """One text at a time: in a batch, padding and company would change the last digits, and now and then a word."""

    shard = 32

    def __init__(self, pivot: Pivot, settings: BackTranslation) -> None:
        names = (pivot.forward, pivot.backward)
        self._ways = [load_model(name, AutoModelForSeq2SeqLM, "a translation model, such as Marian") for name in names]
        self._sampling = settings.decoding == "sampling"
        self._seed = settings.seed
        self._how = (
            {"do_sample": True, "num_beams": 1, "top_k": settings.top_k, "top_p": settings.top_p}
            if self._sampling
            else {"do_sample": False, "num_beams": settings.beams}
        )
        hashes = " ".join(way.sha256 for way in self._ways)
        seed = f" seed {settings.seed}" if self._sampling else ""
        self.identity = f"back-translation {REVISION} {hashes} {sorted(self._how.items())}{seed}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Back-translations. Beams run in several workers; chance has one source a process, so sampling in one."""
        with quiet():
            if self._sampling:
                yield from map(self._sampled, texts)
                return
            with pack_workers(self._ways[0].model.device) as executor:
                yield from executor.map(self._back_and_forth, texts)

    def _sampled(self, text: str) -> str:
        with torch.random.fork_rng():
            torch.manual_seed(seed_for(self._seed, text))
            return self._back_and_forth(text)

    def _back_and_forth(self, text: str) -> str:
        for way in self._ways:
            text = " ".join(map(partial(self._translate, way), pieces(text)))
        return text.strip()

    @torch.inference_mode()
    def _translate(self, way: ViewModel, text: str) -> str:
        ids = way.tokenizer(text, return_tensors="pt", truncation=True, max_length=way.longest)["input_ids"]
        most = min(2 * ids.shape[1] + 20, way.longest)  # a translation without end is cut
        generate: Any = way.model.generate
        out = generate(ids.to(way.model.device), max_new_tokens=most, **self._how)
        return str(way.tokenizer.decode(out[0], skip_special_tokens=True))
