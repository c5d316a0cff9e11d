"""Small sets of known content, in files, with vectors that a probe can separate."""

import hashlib

import numpy as np

from sentloom.evaluation.set_source import SetSource

WORDS = {"good": 1.0, "bad": -1.0}


def put(folder, name, rows, header="label\ttext"):
    file = folder / f"{name}.tsv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([header, *("\t".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")


def lookup(texts, role="symmetric"):
    """Encode the first word in the first component of (n, 4), with noise that depends on the text in the others."""
    noise = [np.frombuffer(hashlib.sha256(text.encode()).digest()[:3], np.uint8) / 2550 for text in texts]
    told = [WORDS.get(text.split()[0], 0.0) for text in texts]
    return np.array([[word, *rest] for word, rest in zip(told, noise, strict=True)], np.float32)


def reviews(count, wrong=0, start=0):
    """Build as many good as bad reviews; the first `wrong` rows have the wrong label."""
    rows = [(number % 2, f"{('bad', 'good')[number % 2]} film {start + number}") for number in range(count)]
    return [(1 - label, text) if at < wrong else (label, text) for at, (label, text) in enumerate(rows)]


def fast(folder, checked=False):
    return SetSource(folder, checked, {"preset": "fast"})
