"""A frozen encoder to learn from: its vectors of the training data are computed once and kept on disk."""

import hashlib
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.encoder import Encoder
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.heads import Projection
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.vector_files import build_file, open_vectors
from sentloom.errors import InputError
from sentloom.files import is_sealed, seal
from sentloom.locks import in_turn
from sentloom.methods.method import Tell

Head = Literal["none", "linear", "linear-tanh"]


class FrozenSource(nn.Module):
    """An encoder that never changes, in evaluation mode whatever happens around it; it reads the first column."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False).eval()
        self.kept: Vectors | None = None  # (rows of the data set, d), memory-mapped

    def train(self, mode: bool = True) -> "FrozenSource":
        """It stays as it is: dropout would be noise in what is learnt from."""
        return super().train(False)

    def prepare(self, data: Dataset, folder: Path, log: Tell = lambda text: None) -> None:
        """Encode the first column of the data, or use what an earlier run made of it, and continue what it began.

        While another process computes the same vectors, this one waits for them. Damaged ones are computed again.
        """
        texts = data.column(text_columns(data.shape)[0])
        content = f"{data.sha256} {data.shape} {sorted(data.used.items())}"
        key = hashlib.sha256(f"{self.encoder.fingerprint()} {content}".encode()).hexdigest()[:20]
        path, shape = folder / f"{key}.npy", (len(texts), self.encoder.dimension)
        with in_turn(path, log):
            if not is_sealed(path):
                if path.exists():
                    log(f"{path} is not what was written: its vectors are computed again")
                build_file(self.encoder, texts, path, source=content)
                seal(path)
            self.kept = open_vectors(path, shape)

    @torch.no_grad()
    def embed(self, batch: Batch) -> dict[str, Tensor]:
        """The batch's vectors, (n, d), by the name of source; nothing where all of them are on disk."""
        return {} if self.kept is not None else {"source": self.encoder(self.encoder.tokenize(batch.first))}

    def vectors(self, batch: Batch, like: Tensor) -> Tensor:
        """The kept vectors of a batch, (n, d)."""
        assert self.kept is not None
        return torch.from_numpy(self.kept[batch.rows]).to(like)


def load_source(name: str | None, pooling: str | None, encoder: Encoder) -> Encoder:
    """The encoder of that name; without one, a copy of the encoder that is trained, as it is before training."""
    if name is not None:
        return Encoder.load(name, pooling=pooling)
    source = encoder.copy()
    if pooling is not None:
        set_pooling(source, pooling)
    return source


def set_pooling(encoder: Encoder, pooling: str) -> None:
    """Give an encoder another pooling, if its backbone has it."""
    chosen = Pooling.parse(pooling)
    encoder.backbone.check(chosen)
    encoder.pooling = chosen


def build_head(method: str, kind: Head, width_in: int, width_out: int) -> Projection | None:
    """What takes the trained encoder's vectors to the source's width."""
    if kind != "none":
        return Projection(width_in, width_out, activation="tanh" if kind == "linear-tanh" else "identity")
    if width_in != width_out:
        found = f"an encoder of width {width_in} and a source of width {width_out}"
        raise InputError(method, found, "equal widths, or a head between them", "set head: linear")
    return None
