"""Parallel data out of any data set: each distinct sentence beside its translation."""

from pathlib import Path

from sentloom.data.dataset import Dataset
from sentloom.errors import InputError
from sentloom.views.maker import Maker
from sentloom.views.pairs import make_translations

BEAMS = 5


def translate(
    dataset: Dataset,
    *,
    into: str | None = None,
    model: str | None = None,
    beams: int | None = None,
    prefix: str = "",
    cache: Path | None = None,
    show_progress: bool = True,
) -> Dataset:
    """Pairs (source, target) by the embedded translator, into "pt" or "en", or by a translation model.

    `model` is a folder or a hub name, Marian's or T5's, searched with 5 `beams` if not told otherwise; T5 wants a
    `prefix` such as "translate English to German: ".
    Translations are kept in the folder `cache`: what is there is not made again, so that a run that died goes on.
    """
    maker = _maker(into, model, beams, prefix)
    return make_translations(dataset, maker, cache=cache, show_progress=show_progress)


def _maker(into: str | None, model: str | None, beams: int | None, prefix: str) -> Maker:
    if model is None:
        from sentloom.views.embedded_translator import EmbeddedTranslation

        if prefix or beams:
            found = "a prefix or beams for the embedded translator"
            raise InputError("translation", found, "these only with a model", "leave them out, or name a model")
        return EmbeddedTranslation(into or "pt")
    from sentloom.views.translation_models import ModelTranslation

    if into is not None:
        found = f"into {into!r} beside the model {model}"
        raise InputError("translation", found, "a model, which has its own language, or a language", "leave one out")
    return ModelTranslation(model, beams or BEAMS, prefix)
