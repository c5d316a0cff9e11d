"""Bases that state no pooling, such as models made for writing, as folders that state the one that was asked for.

MODEL.fit/bases/NAME-POOLING-HASH/    a copy of the base, so that all stages, and later commands, find it by its path
"""

from pathlib import Path

from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.locate import CARD, catalogue_entry, is_model, locate
from sentloom.encoder.model_files import find
from sentloom.encoder.pooling import Pooling
from sentloom.engine.stages.train import stated_pooling
from sentloom.errors import InputError, option
from sentloom.fitting.request import Request


def pooled_bases(request: Request) -> tuple[str, ...]:
    """The names of the bases; one that states no pooling has that of its copy, if a pooling is asked for."""
    if request.pooling is None:
        return request.base
    asked = Pooling.parse(request.pooling)
    own = [stated_pooling(name) for name in request.base]
    if None not in own and str(asked) not in own:
        problem = f"{request.base[0]} states {own[0]} pooling, and {asked} is asked for"
        expected, fix = "a base that states none, such as a model made for writing", "leave the option out"
        raise InputError(option("pooling"), problem, expected, fix)
    return tuple(
        name if pooling else str(_copy(name, asked, request.folder / "bases"))
        for name, pooling in zip(request.base, own, strict=True)
    )


def _copy(name: str, pooling: Pooling, folder: Path) -> Path:
    encoder = shared_encoder(name, pooling=str(pooling))
    place = folder / f"{Path(name).name}-{pooling}-{encoder.fingerprint()[:16]}"
    if not is_model(place):
        encoder.save(place, golden=False)
        if card := _card(name):
            (place / CARD).write_text(card, "utf-8")
    return place


def _card(name: str) -> str:
    """What says the languages of a model: its own card, or the catalogue."""
    if entry := catalogue_entry(name):
        return f"---\nlanguage: [{', '.join(entry.languages)}]\n---\n"
    card = find(locate(name), CARD)
    return card.read_text("utf-8", "replace") if card else ""
