"""Find the folder of a model by its name: a path, a name of the catalogue, or a name on the hub."""

import os
import re
from pathlib import Path
from textwrap import shorten

from sentloom.encoder.catalogue.entries import Entry
from sentloom.encoder.catalogue.gguf import is_gguf, unpacked
from sentloom.encoder.catalogue.listed import CATALOGUE, EMBEDDED
from sentloom.encoder.catalogue.places import checked_folder
from sentloom.encoder.model_files import ADAPTER, TOKENIZER_OTHERS, find, read_json
from sentloom.errors import InputError, ModelError, first_line, option
from sentloom.files import at_its_name, home_expanded

HUB_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
    *("sentencepiece.model", "spm.model"),
)
CARD = "README.md"  # says the languages of a model
FETCHED = ["*.json", "*.safetensors", *TOKENIZER_OTHERS, CARD]  # a star also matches folders


def locate(name: str | Path, revision: str | None = None) -> Path:
    """Return the local folder of a model, downloading it from the hub if necessary."""
    folder = at_its_name(home_expanded(name))
    entry = catalogue_entry(name)
    if revision and (entry or folder.is_dir()):
        fix = "leave it out, or name a model on the hub"
        raise InputError("revision", f"{name} is not a name on the hub, and has no revisions", "", fix)
    if entry:
        return unpacked(entry) if is_gguf(entry) else checked_folder(entry)
    if not folder.is_dir():
        refuse_unwritten(name)
        folder = _fetch(str(name), revision)
    check_parts(folder)
    return folder


def refuse_absent(name: str | Path) -> None:
    """Refuse a model that is not there. Nothing is unpacked for that, and PyTorch is not needed."""
    if entry := catalogue_entry(name):
        checked_folder(entry)
    else:
        locate(name)


def catalogue_entry(name: str | Path) -> Entry | None:
    """The model that a name of the catalogue means; None for other names. A model folder of that name is ambiguous."""
    entry = CATALOGUE.get(str(name))
    if entry and name != EMBEDDED.name and is_model(name):
        problem = f"{name} is a model of the catalogue, and a model folder here has the same name"
        raise ModelError(str(name), problem, "", f"write ./{name} for the folder, or rename it")
    return entry


def is_model(name: str | Path) -> bool:
    """Whether a name is that of a model folder."""
    return (at_its_name(Path(name)) / "config.json").is_file()


def is_cross_encoder(name: str | Path) -> bool:
    """Whether a model scores pairs instead of giving vectors, as the catalogue or its configuration says."""
    if entry := catalogue_entry(name):
        return entry.use == "re-ranker"
    architectures = read_json(locate(name) / "config.json").get("architectures")
    return any("SequenceClassification" in str(architecture) for architecture in architectures or ())


def refuse_unwritten(name: str | Path) -> None:
    """Refuse the model of a fit that wrote none: its folder MODEL.fit is there, and its report says why."""
    model = at_its_name(home_expanded(name))
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
            f"a model folder, one of {', '.join(CATALOGUE)}, or a hub name such as owner/name or owner/name@revision",
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
    return checked_folder(EMBEDDED)
