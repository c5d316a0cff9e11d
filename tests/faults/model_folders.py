"""Small whole model folders for the fault bench, and the process that loads damaged copies of them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sentloom
from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.heads import Projection
from sentloom.writing.text_to_text import TextToText
from tests.encoder.small_models import build_model_folder
from tests.writing.small_synthesizers import build_small_t5

ROOT = Path(__file__).parents[2]


def build_bert(folder: Path) -> Path:
    """With every part: two projections, unit length, prompts."""
    base = Encoder.load(build_model_folder("bert", folder.with_name("plain-bert")))
    heads = [Projection(32, 24), Projection(24, 12, activation="tanh")]
    prompts: Any = {"symmetric": Prompt("dogs "), "query": Prompt("man ")}
    Encoder(base.backbone, base.tokens, pooling=base.pooling, heads=heads, prompts=prompts).eval().save(folder)
    return folder


def build_t5(folder: Path) -> Path:
    """Pooled over two layers, which only sentloom.json can say."""
    plain = build_model_folder("t5", folder.with_name("plain-t5"))
    Encoder.load(plain, pooling="mean@1,-1").save(folder)
    return folder


def build_synthesizer(folder: Path) -> Path:
    """A text-to-text model, with its prompts."""
    TextToText.load(build_small_t5(folder.with_name("plain-synthesizer"))).save(folder)
    return folder


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


@contextmanager
def loader(cache: Path) -> Iterator[Any]:
    """A function that loads a folder in a child of another process: {"loaded"}, {"refused"} or {"broken"}."""
    source = str(Path(sentloom.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "SENTLOOM_CACHE": str(cache)}
    command = [sys.executable, "-m", "tests.faults.load_folders"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdin
        assert process.stdout

        def load(folder: Path, kind: str = "encoder") -> dict[str, Any]:
            process.stdin.write(f"{kind} {folder}\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        yield load
        process.stdin.close()
