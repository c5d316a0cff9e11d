"""The languages that a base was made for, and a warning if the texts are in others.

A base that does not know a language can become better at it and still be poor, which a comparison with itself does not
show.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder.locate import CARD
from sentloom.encoder.model_files import find
from sentloom.errors import option
from sentloom.fitting.bases import Base
from sentloom.fitting.general import general_rows
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.request import Log
from sentloom.hygiene.languages import NAMES, language_name, recognised
from sentloom.hygiene.token_stats import count_tokens

MADE_FOR = {"embedded": ("en",)}
ANY = "multilingual"  # in a card: more languages than it lists
HEADER = 1 << 16  # bytes of a card that are read
CODES = {name.casefold(): code for code, name in NAMES.items()}  # some cards have names
CODES |= {"eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es", "ita": "it", "por": "pt"}
CODES |= {"nld": "nl", "dut": "nl", "pol": "pl", "rus": "ru", "zho": "zh", "chi": "zh", "jpn": "ja", "nb": "no"}
LEAST_SHARE = 0.2  # of the texts: rarer languages are often mistakes
ADVICE = (
    "choose a base that was made for it, such as a multilingual one ({base}), or add translations into it as a file"
)


def with_languages(bases: Sequence[Base], inputs: Sequence[FitInput], log: Log) -> tuple[Base, ...]:
    """The bases with the languages that they were made for, which are logged."""
    found = []
    for base in bases:
        codes = MADE_FOR.get(base.name) or card_languages(Path(base.encoder.backbone.model.config.name_or_path))
        words = ", ".join(map(language_name, codes)) if codes else _unknown(base, inputs)
        found.append(replace(base, languages=codes, made_for=words))
        log(f"Languages that the base {base.name} was made for: {words}")
        for warning in language_gap(found[-1], inputs):
            log(f"WARNING: {warning}")
    return tuple(found)


def card_languages(folder: Path) -> tuple[str, ...]:
    """The languages in the header of a model's card; empty if it does not say."""
    import yaml

    path = find(folder, CARD)
    if path is None:
        return ()
    with path.open("rb") as file:
        _, *parts = re.split(r"^---\s*$", file.read(HEADER).decode("utf-8", "replace"), maxsplit=2, flags=re.MULTILINE)
    said: object = None
    if len(parts) == 2:
        with suppress(yaml.YAMLError, RecursionError, ValueError):
            header = yaml.safe_load(parts[0])
            said = header.get("language") if isinstance(header, dict) else None
    listed = said if isinstance(said, list) else [] if said is None else [said]
    return tuple(dict.fromkeys(_code(one) for one in listed if isinstance(one, str | bool)))


def _code(value: str | bool) -> str:
    """An ISO 639-1 code if it can be known; YAML reads the code of Norwegian as false."""
    text = "no" if value is False else str(value).strip().casefold()
    return CODES.get(text) or CODES.get(short := re.split("[-_]", text)[0], short)


def _unknown(base: Base, inputs: Sequence[FitInput]) -> str:
    """How the vocabulary fits, where nothing says the languages."""
    own, unit = _tokens(base, inputs[0].data)
    english, _ = _tokens(base, general_rows())
    splits = f"its vocabulary splits {unit}s of the training texts into {own:.2f} tokens"
    return f"unknown: {splits}, English words into {english:.2f}"


def _tokens(base: Base, data: Dataset) -> tuple[float, str]:
    """The mean of a word of the first column, or of a character in scripts without spaces."""
    tokens = base.encoder.tokens
    first = count_tokens(data, tokens.bare, tokens.tokenizer.unk_token_id)[0]
    return first.mean, first.unit


def language_gap(base: Base, inputs: Sequence[FitInput]) -> Iterator[str]:
    """A warning for every language of the texts that the base was not made for.

    Translations from a language that it knows are how it learns another one: they are no reason for a warning.
    """
    if not base.languages or ANY in base.languages:
        return
    spoken = dict.fromkeys(code for given in inputs for code in _languages(given) if not _teaches(given, base))
    for code in spoken:
        if code in base.languages:
            continue
        name = language_name(code)
        yield (
            f"The training texts are in {name}, and the base {base.name} was made for {base.made_for}. The fitted "
            f"model is compared with this base only: it can be better and still be poor at {name}. To get a good one, "
            f"{ADVICE.format(base=option('base', 'MODEL'))}."
        )


def _languages(given: FitInput) -> list[str]:
    return [code for code, share in recognised(given.shares).items() if share >= LEAST_SHARE]


def _teaches(given: FitInput, base: Base) -> bool:
    return given.data.shape is Shape.PARALLEL and not set(base.languages).isdisjoint(given.languages.values())
