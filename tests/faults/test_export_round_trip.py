"""What sentloom trains and saves, plain sentence-transformers loads: 1,000 texts of each model get the same vectors.

sentence-transformers runs in a process that cannot import sentloom. What it has no modules for, it refuses. The round
trip through ONNX comes with the export to it.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sentloom.encoder import Encoder, Prompt
from sentloom.training import Settings, train
from tests.encoder.small_models import DECODER_FAMILIES, SENTENCES, build_model_folder
from tests.faults.conftest import Tally
from tests.training.small_runs import CASES, build, data_for

pytestmark = pytest.mark.long  # tests/encoder/test_saving.py has the quick forms

FAULT = "16. export to sentence-transformers"
ASKED = 10_000  # 1,000 texts for each of the nine methods and the embedded encoder

LEAST = 0.99999
# One in fifty beyond what the models read; some without words, in other scripts, with special tokens.
ODD = ("", "   ", "\n", "😀 🇵🇹", "مرحبا", "漢字かな", "[CLS] [SEP] <pad>", "a\u0301\u0301", "x" * 300, "ÅNGSTRÖM ǅ ﬁ")
TEXTS = [f"{SENTENCES[i % 8]} {i}" if i % 50 else f"{' '.join(SENTENCES)} {i}" for i in range(990)] + list(ODD)
TRAINED = {  # what changes the saved folder: heads that are kept, projections, poolings
    **{case: {} for case in CASES if " " not in case},
    "simcse with its head": {"keep_head": True},
    "contrastive with a head": {"head": True, "projection": None},
    "cross-lingual with its head": {"keep_head": True, "inference_pooling": "max"},
    "mse-distillation with its head": {"keep_head": True},
}
PLAIN = """
import json, sys
sys.modules["sentloom"] = None  # an import of it would fail
import numpy as np
from sentence_transformers import SentenceTransformer
for line in sys.stdin:
    folder, texts, methods, out = json.loads(line)
    try:
        model = SentenceTransformer(folder, device="cpu")
        np.save(out, np.stack([getattr(model, method)(texts, batch_size=128) for method in methods]))
        print("done", flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
"""
Ask = Callable[..., Any]
PADDING = "transformers' RoBERTa gives a padding token written out in a text no position of its own; sentloom does"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The vectors of `SentenceTransformer(folder)` in that process, or what it says when it refuses."""
    out = tmp_path_factory.mktemp("plain") / "vectors.npy"
    command = [sys.executable, "-c", PLAIN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout

        def ask(folder: Path, methods: tuple[str, ...] = ("encode",)) -> Any:
            process.stdin.write(json.dumps([str(folder), TEXTS, methods, str(out)]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            return np.load(out) if answer == "done\n" else answer

        yield ask
        process.stdin.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("models")
    return lambda family: build_model_folder(family, root / family)


def check_equal(ours: Any, theirs: Any, tally: Tally, padding: str | None = None) -> None:
    """Every text is a case; `padding` is the known fault of texts with a padding token, if there is one."""
    assert isinstance(theirs, np.ndarray), theirs
    assert ours.shape == theirs.shape == (len(TEXTS), ours.shape[1])
    one, two = ours.astype(np.float64), theirs.astype(np.float64)
    cosines = (one * two).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
    for text, cosine in zip(TEXTS, cosines, strict=True):
        with tally.case(repr(text[:40]), known=padding if "<pad>" in text else None):
            assert cosine >= LEAST


def check_trained(name: str, model: Path, folder: Path, plain: Ask, tally: Tally) -> None:
    """A few steps, so that no weight is what it was; then save, and compare."""
    case = name.split(" with ")[0]
    method = build(case, model, **TRAINED[name])
    settings = Settings(batch=8, steps=3, learning_rate=1e-3)
    train(method, data_for(case), settings, seed=1, folder=folder / "run")
    encoder = method.finished().eval()
    encoder.save(folder / "model")
    check_equal(encoder.encode(TEXTS), plain(folder / "model")[0], tally)


@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_model(name: str, small: Callable, tmp_path: Path, plain: Ask, tally: Tally) -> None:
    check_trained(name, small("bert"), tmp_path, plain, tally)


def test_the_embedded_encoder(tmp_path: Path, plain: Ask, tally: Tally) -> None:
    encoder = Encoder.load("embedded")
    encoder.save(tmp_path / "model")
    check_equal(encoder.encode(TEXTS), plain(tmp_path / "model")[0], tally)


@pytest.mark.parametrize("family", ["bert", "roberta", "t5"])
def test_prompts_by_role(family: str, small: Callable, tmp_path: Path, plain: Ask, tally: Tally) -> None:
    """Prefixes by role, and one suffix for all, which truncation spares."""
    prompts = {
        "symmetric": Prompt("dogs ", " A man."),
        "query": Prompt("man: ", " A man."),
        "document": Prompt("", " A man."),
    }
    encoder = Encoder.load(small(family), max_length=40, prompts=prompts)
    encoder.save(tmp_path / "model")
    theirs = plain(tmp_path / "model", ("encode", "encode_query", "encode_document"))
    for role, vectors in zip(("symmetric", "query", "document"), theirs, strict=True):
        check_equal(encoder.encode(TEXTS, role=role), vectors, tally, PADDING if family == "roberta" else None)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        *((family, {"pooling": "decoder-first"}) for family in DECODER_FAMILIES),
        ("bert", {"prompts": {"query": Prompt(suffix=" dogs"), "document": Prompt(suffix=" man")}}),
    ],
)
def test_what_it_cannot_express_is_refused_by_it(
    family: str, options: dict[str, Any], small: Callable, tmp_path: Path, plain: Ask
) -> None:
    encoder = Encoder.load(small(family), **options)
    encoder.save(tmp_path / "model")
    assert "NeedsSentloomToLoad" in str(plain(tmp_path / "model"))
    again = Encoder.load(tmp_path / "model")
    assert np.array_equal(again.encode(SENTENCES, role="query"), encoder.encode(SENTENCES, role="query"))
