"""A frozen encoder to learn from. Its vectors of the training data are computed once and stored on disk."""

import hashlib
from pathlib import Path

import pyarrow as pa
import torch
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.encoder import Encoder
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.prompts import Role
from sentloom.encoder.vector_files import build_file, open_vectors
from sentloom.files import is_sealed, seal
from sentloom.locks import in_turn
from sentloom.methods.method import Log


class FrozenSource(nn.Module):
    """An encoder that never changes and is always in evaluation mode. It reads the first column of the data."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False).eval()
        self.stored: Vectors | None = None  # (rows of the dataset, d), memory-mapped

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """The vectors of the first column, (n, d): read from disk after `prepare`, computed without it."""
        if self.stored is None:
            return self.encoder(self.encoder.tokenize(batch.first))
        return torch.from_numpy(self.stored[batch.rows]).to(next(self.encoder.parameters()))

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Encode the first column of the data, or use the vectors of an earlier run."""
        content = f"{data.sha256} {data.shape} {sorted(data.used.items())}"
        self.stored = stored_vectors(self.encoder, data.column(text_columns(data.shape)[0]), content, folder, log)

    def train(self, mode: bool = True) -> "FrozenSource":
        """Stay in evaluation mode: dropout would be noise in the vectors to learn from."""
        return super().train(False)


def stored_vectors(
    encoder: Encoder, texts: pa.ChunkedArray, content: str, folder: Path, log: Log, role: Role = "symmetric"
) -> Vectors:
    """Vectors of texts in a file that all runs share; `content` identifies the texts. An interrupted run is resumed.

    If another process is computing the same vectors, wait for them. Damaged vectors are computed again.
    """
    source = content if role == "symmetric" else f"{content} {role}"
    key = hashlib.sha256(f"{encoder.fingerprint()} {source}".encode()).hexdigest()[:20]
    path, shape = folder / f"{key}.npy", (len(texts), encoder.dimension)
    with in_turn(path, log):
        if not is_sealed(path):
            if path.exists():
                log(f"{path} is damaged: its vectors are computed again")
            build_file(encoder, texts, path, source=content, role=role)
            seal(path)
        return open_vectors(path, shape)


def load_source(name: str | None, pooling: str | None, encoder: Encoder) -> Encoder:
    """The encoder of that name; without a name, a copy of the encoder that is about to be trained."""
    if name is not None:
        return Encoder.load(name, pooling=pooling)
    source = encoder.copy()
    if pooling is not None:
        set_pooling(source, pooling)
    return source


def set_pooling(encoder: Encoder, pooling: str) -> None:
    """Give an encoder another pooling, if its backbone supports it."""
    chosen = Pooling.parse(pooling)
    encoder.backbone.check(chosen)
    encoder.pooling = chosen
