"""Translation models such as Marian: one for translation, two for back-translation."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, LogitsProcessor, TopKLogitsWarper, TopPLogitsWarper

from sentloom.encoder.loading import quiet
from sentloom.encoder.text_models import TextModel, load_for_inference
from sentloom.encoder.workers import pack_workers
from sentloom.views.chunking import chunks
from sentloom.views.maker import seed_for
from sentloom.views.settings import BackTranslation, Pivot

REVISION = 1  # increased when the same models would produce different views
EXPECTED = "a translation model, such as Marian"


class PivotTranslator:
    """Back-translates one text at a time: in a batch, padding would change the last digits, and sometimes a word."""

    shard = 32

    def __init__(self, pivot: Pivot, settings: BackTranslation) -> None:
        self._settings = settings
        self._ways = [
            load_for_inference(name, AutoModelForSeq2SeqLM, EXPECTED) for name in (pivot.forward, pivot.backward)
        ]
        used = {"beam": ("beams",), "sampling": ("top_k", "top_p", "seed")}[settings.decoding]
        how = " ".join(f"{name} {getattr(settings, name)}" for name in ("decoding", *used))
        self.identity = f"back-translation {REVISION} {' '.join(way.sha256 for way in self._ways)} {how}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield back-translations, made by several workers."""
        with quiet(), pack_workers(self._ways[0].model.device) as executor:
            yield from executor.map(self._back_and_forth, texts)

    def _back_and_forth(self, text: str) -> str:
        decoding = self._decoding(text)
        for way in self._ways:
            text = " ".join(_translate(way, chunk, decoding) for chunk in chunks(text))
        return text.strip()

    def _decoding(self, text: str) -> dict[str, Any]:
        """Return the arguments of `generate` for one text."""
        if self._settings.decoding == "beam":
            return {"do_sample": False, "num_beams": self._settings.beams}
        limits: list[LogitsProcessor] = [TopPLogitsWarper(self._settings.top_p)]
        if self._settings.top_k:
            limits.insert(0, TopKLogitsWarper(self._settings.top_k))
        noise = GumbelNoise(seed_for(self._settings.seed, text))
        return {"do_sample": False, "num_beams": 1, "logits_processor": [*limits, noise]}


class ModelTranslation:
    """Translates by beam search, one text at a time. `prefix` is put before each text."""

    shard = 32

    def __init__(self, name: str, beams: int, prefix: str) -> None:
        self._way = load_for_inference(name, AutoModelForSeq2SeqLM, EXPECTED)
        self._prefix, self._decoding = prefix, {"do_sample": False, "num_beams": beams}
        self.identity = f"translation {REVISION} {self._way.sha256} beams {beams} prefix {prefix!r}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield translations, made by several workers."""
        with quiet(), pack_workers(self._way.model.device) as executor:
            yield from executor.map(self._translated, texts)

    def _translated(self, text: str) -> str:
        parts = (_translate(self._way, self._prefix + chunk, self._decoding) for chunk in chunks(text))
        return " ".join(parts).strip()


class GumbelNoise(LogitsProcessor):  # type: ignore[misc]
    """Turns greedy decoding into sampling: the argmax of logits plus Gumbel noise is a draw from their softmax.

    Each text has its own random generator. `generate` would use the global one, which would make a view depend on
    the texts translated before it.
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Add noise to scores (1, vocabulary); a score of -inf stays -inf."""
        noise = -torch.empty(scores.shape).exponential_(generator=self._generator).log()
        return scores + noise.to(scores.device)


@torch.inference_mode()
def _translate(way: TextModel, text: str, decoding: dict[str, Any]) -> str:
    ids, _ = way.cut(way.tokenizer(text)["input_ids"])
    most = min(2 * len(ids) + 20, way.longest)  # cuts off a translation that does not end
    generate: Any = way.model.generate
    out = generate(torch.tensor([ids], device=way.model.device), max_new_tokens=most, **decoding)
    return str(way.tokenizer.decode(out[0], skip_special_tokens=True))
