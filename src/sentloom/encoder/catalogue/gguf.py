"""Language models in GGUF files, unpacked into ordinary folders that transformers loads.

CACHE/models/NAME-HASH-unpacked/    written when it is first needed (a minute for 135 million weights)
"""

from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sentloom.encoder.catalogue.entries import Carrier, Entry
from sentloom.encoder.catalogue.places import checked_folder
from sentloom.errors import MissingPart
from sentloom.files import is_sealed, new_folder, seal

_intact: set[Path] = set()  # folders that this process has compared with their seals


def is_gguf(entry: Entry) -> bool:
    """Whether a model is a GGUF file."""
    return isinstance(entry.origin, Carrier) and entry.origin.form == "gguf"


def unpacked(entry: Entry) -> Path:
    """The unpacked folder of a model."""
    packed = checked_folder(entry)
    folder = packed.with_name(f"{packed.name}-unpacked")
    if folder in _intact and folder.is_dir():
        return folder
    if not is_sealed(folder):
        _unpack(entry, packed, folder)
        seal(folder)
    _intact.add(folder)
    return folder


def _unpack(entry: Entry, packed: Path, folder: Path) -> None:
    """Read the file with transformers, and write weights in float32."""
    if find_spec("gguf") is None:
        problem = "the package gguf, which reads its file, is not installed"
        raise MissingPart(entry.what, problem, "", "pip install gguf")
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from sentloom.encoder.loading import quiet
    from sentloom.encoder.pretrained import loading

    (name,) = entry.files
    with (
        loading(packed / name, "the model"),
        quiet(),
        new_folder(folder) as part,
        TemporaryDirectory(prefix="sentloom-") as alone,
    ):
        (Path(alone) / name).symlink_to(packed / name)  # by itself: loaders look for other files beside it
        where: Any = {"pretrained_model_name_or_path": alone, "gguf_file": name, "local_files_only": True}
        config = AutoConfig.from_pretrained(**where)
        AutoTokenizer.from_pretrained(**where, config=config).save_pretrained(part)
        with redirect_stderr(StringIO()):  # a progress bar that transformers cannot be told to leave out
            read: Any = AutoModelForCausalLM.from_pretrained(**where, config=config, dtype=torch.float32)
        del read.config.quantization_config  # the weights are numbers again
        with torch.device("meta"):
            plain: Any = type(read)(read.config)
        plain.load_state_dict(read.state_dict(), assign=True)
        plain.tie_weights()
        plain.save_pretrained(part)
