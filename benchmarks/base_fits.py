"""Are the bases of the catalogue trainable? One short fit from each, on one set each, and what becomes of the model.

    sentloom models get bge-small mpnet e5-multilingual
    python -m benchmarks.base_fits DATA [-o out/base-fits] [--budget 30steps]

Each fit gets 800 rows of a set (`real_sets`), divides them itself, and says its verdict. The model is then loaded by
plain sentence-transformers and exported to ONNX; the cosines are those of its vectors and sentloom's. With --force a
model is written whatever the verdict is. A finished fit is kept in OUT, so that a run that was killed resumes.
About 15 minutes of one quiet core.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.real_sets import SETS
from sentloom import Encoder, fit

FITS = {"bge-small": "selqa", "e5-multilingual": "stsb-de", "mpnet": "trivia"}
ROWS, TEXTS = 800, 64


def fitted(base, name, arguments):
    """The verdict of a fit, and how close other forms of its model are."""
    folder = arguments.output / f"{base}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    train, _ = SETS[name].split(arguments.data, ROWS, 1)
    train.write(folder / "train.csv")
    start = time.perf_counter()
    done = fit(folder / "train.csv", folder / "model", base=base, budget=arguments.budget, force=True)
    seconds, encoder = time.perf_counter() - start, done.encoder
    texts = list(next(iter(train.columns.values())))[:TEXTS]
    vectors = encoder.encode(texts)
    plain = SentenceTransformer(str(folder / "model"), device="cpu").encode(texts, normalize_embeddings=True)
    encoder.export(folder / "onnx", "onnx")
    return {
        "verdict": done.result.verdict_line,
        "minutes": round(seconds / 60, 1),
        "sentence-transformers": least_cosine(vectors, plain),
        "ONNX": least_cosine(vectors, Encoder.load(folder / "onnx").encode(texts)),
    }


def least_cosine(left, right):
    cosines = (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    return round(float(cosines.min()), 5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/base-fits"))
    parser.add_argument("--budget", default="30steps")
    arguments = parser.parse_args()
    for base, name in FITS.items():
        path = arguments.output / f"{base}-{name}.json"
        if not path.exists():
            result = fitted(base, name, arguments)
            path.write_text(json.dumps(result), "utf-8")
        print(base, name, path.read_text("utf-8"), flush=True)


if __name__ == "__main__":
    main()
