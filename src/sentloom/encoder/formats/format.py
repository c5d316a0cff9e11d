"""What every format of model folders has: its `FORMAT`, and a backbone for models that cannot be trained or saved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from sentloom.encoder.backbone import SHORTEST_WHEN_PADDED, Backbone
from sentloom.encoder.device import Precision
from sentloom.encoder.golden import EXACT
from sentloom.encoder.packing import Pack, pad
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.errors import InputError, ModelError, option

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

CLOSE = 0.99  # the mean cosine that 8-bit weights must reach
LAST = (-1,)  # layer
AFTER_PADDING = ("camembert", "mpnet", "roberta", "xlm-roberta")  # families whose positions start after the padding id


@dataclass(frozen=True)
class Target:
    """How an encoder is written into a new folder, and the cosine that its vectors must reach with the model's.

    `required` is None if they differ by design. `note` tells users what to know about the vectors.
    """

    write: Callable[["Encoder", Path], None]
    required: float | None = EXACT
    note: str = ""

    @property
    def lossy(self) -> bool:
        """Whether vectors are not the same, so that a score has to be compared too."""
        return self.required != EXACT


@dataclass(frozen=True)
class Format:
    """A format of model folders.

    `load` takes the folder, and by name pooling, prompts and max_length, None for the folder's own. It returns the
    constructor arguments of an Encoder.
    """

    holds: Callable[[Path], bool]  # whether a folder has this format
    load: Callable[..., dict[str, Any]]
    targets: Mapping[str, Target]  # by the names that the registry lists
    package: str  # the library that runs it, on whose version the fastest backend depends
    reader: str = "sentence-transformers"  # the library that its card names for reading it
    trainable: bool = False  # never replaced by an export


class ReadOnlyBackbone(Backbone):
    """The states of the last layer, or of what the folder was exported to pool."""

    def __init__(self, config: PreTrainedConfig, name: str, sha256: str, *, batched: bool) -> None:
        """`sha256` is of the file that runs; without `batched`, sentences run one at a time."""
        nn.Module.__init__(self)
        config.runs = sha256  # what the fingerprint of an encoder depends on
        self.model: Any = ReadOnlyModel(config, name)
        self.name, self.batched, self.packed = name, batched, not batched
        self.shortest = SHORTEST_WHEN_PADDED if batched else 0.0
        self.padding = config.pad_token_id or 0
        self.first_position = first_position(config)

    def run(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The states (n, L, d) of token ids (n, L); the mask (n, L) is true for real tokens."""
        raise NotImplementedError

    def check(self, pooling: Pooling) -> None:
        """Refuse a pooling that needs other states than the last ones."""
        super().check(pooling)
        if pooling.layers != LAST or pooling.how == DECODER_FIRST:
            problem = f"{self.name} gives the states of its last layer only"
            raise InputError(f"pooling {str(pooling)!r}", problem, "first, last, mean or max", "choose one of these")

    def precision_for(self, asked: Precision | None = None) -> Precision:
        """Refuse another precision than the file's own; the one chosen for all models is ignored."""
        if asked not in (None, "fp32"):
            problem = f"{self.name} is an exported model, which cannot run in {asked}"
            fix = "leave precision out, or name the model that it was exported from"
            raise InputError(option("precision"), problem, "fp32", fix)
        return "fp32"

    def states(self, pack: Pack, layers: Sequence[int] = LAST) -> list[Tensor]:
        """Return the last states (T, d)."""
        if tuple(layers) != LAST:
            raise InputError(self.name, "its layers are asked for", "the last one", "choose another model")
        flat = pack.ids[0].cpu()
        if self.batched:
            ids, mask = pad(flat, pack, self.padding)
            return [self.run(ids, mask)[mask].to(pack.ids.device)]
        parts = [self.run(ids[None], torch.ones(1, len(ids), dtype=torch.bool))[0] for ids in flat.split(pack.lengths)]
        return [torch.cat(parts).to(pack.ids.device)]

    def train(self, mode: bool = True) -> "ReadOnlyBackbone":
        """Refuse to train."""
        if mode:
            refuse_changes(self.name)
        super().train(mode)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReadOnlyBackbone":
        return self  # it never changes


def first_position(config: PreTrainedConfig) -> int:
    """The position of a text's first token."""
    return (config.pad_token_id or 0) + 1 if config.model_type in AFTER_PADDING else 0


class ReadOnlyModel(nn.Module):
    """Stands for a transformers model: it has a configuration, and an empty parameter, which only has a device."""

    def __init__(self, config: PreTrainedConfig, name: str) -> None:
        super().__init__()
        self.config, self.name = config, name
        self.place = nn.Parameter(torch.empty(0), requires_grad=False)

    def get_input_embeddings(self) -> nn.Embedding:
        """As many rows as the vocabulary has, without memory."""
        return nn.Embedding(self.config.vocab_size, 1, device="meta")

    def save_pretrained(self, folder: object) -> None:
        """Refuse."""
        refuse_changes(self.name)


def refuse_changes(name: str) -> None:
    """Refuse to train or save what was exported."""
    problem = "it is an exported model, which can encode but cannot be trained or saved"
    raise ModelError(name, problem, "a model with its weights", "name the model that it was exported from")
