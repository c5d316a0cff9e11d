"""Build parallel data from any data set: each distinct sentence with its translation."""

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
        from sentloom.views.embedded_translator import EmbeddedTranslation

        if prefix or beams:
            problem = "prefix and beams do not apply to the embedded translator"
            raise InputError("translation", problem, "", "leave them out, or name a model")
        return EmbeddedTranslation(into or "pt")
    from sentloom.views.translation_models import ModelTranslation

    if into is not None:
        problem = f"both the language {into!r} and the model {model} are given"
        raise InputError("translation", problem, "only one, because a model has its own language", "leave one out")
    return ModelTranslation(model, beams or BEAMS, prefix)
