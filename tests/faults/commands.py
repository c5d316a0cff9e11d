"""Every command that writes, on small models and small data, run in children that are forked from this warm process."""

import hashlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
import yaml

from sentloom.cli import main
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.fitting import small_base
from tests.writing.small_synthesizers import build_small_t5
from tests.writing.views.small_parts import build_translation_model

EXIT_OK, EXIT_REFUSED, EXIT_NOT_BETTER = 0, 2, 3


@dataclass(frozen=True)
class Command:
    """Arguments in which OUT stands for the folder of the output; and the files that must be the same each time."""

    arguments: tuple[str, ...]
    same: tuple[str, ...]  # patterns below the folder of the output
    codes: tuple[int, ...] = (EXIT_OK,)
    shares: bool = False  # two processes may work on it together

    def at(self, out: Path) -> list[str]:
        return [argument.replace("OUT", str(out)) for argument in self.arguments]

    def outputs(self, out: Path) -> dict[str, str]:
        """Hashes of the files that must be the same; hidden ones are half-written files of a process that was killed."""
        found = {path for pattern in self.same for path in out.glob(pattern)}
        paths = sorted(path for path in found if not path.name.startswith("."))
        return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


MODEL = ("--model", "model")
TRAIN = ("lab", "train", "recipe.yaml", "-o", "OUT/run")
SYNTHESIZE = (
    *("lab", "synthesize", "few.txt", "--writer", "t5", "--sampling", "length=4", "--execution", "block=4"),
    *("--filters", "threshold=0"),
)
COMMANDS = {
    "encode": Command(("encode", "texts.txt", "-o", "OUT/v.npy", *MODEL), ("v.npy",)),
    "encode to parquet": Command(("encode", "texts.txt", "-o", "OUT/v.parquet", *MODEL), ("v.parquet",)),
    "check": Command(("check", "texts.txt", "--json", "OUT/c.json", *MODEL), ("c.json",), shares=True),
    "clean": Command(("check", "texts.txt", "-o", "OUT/c.csv"), ("c.csv",), shares=True),
    "views": Command(
        ("lab", "views", "few.txt", "--kind", "file", "--file", "pairs.tsv", "--missing", "skip", "-o", "OUT/v.tsv"),
        ("v.tsv",),
        shares=True,
    ),
    "translate": Command(("lab", "translate", "four.txt", "-o", "OUT/t.tsv", "-m", "marian", "--beams", "1"), ("t.tsv",), shares=True),
    "mine": Command(("lab", "mine", "pairs.tsv", "-o", "OUT/m.jsonl", "--margin", "-1", *MODEL), ("m.jsonl",), shares=True),
    "evaluate": Command(
        ("evaluate", "model", "--suite", "pairs:scored.tsv", "--cache", "OUT/cache", "-o", "OUT/s.csv", "-o", "OUT/s.md"),
        ("s.csv", "s.md"),
        shares=True,
    ),
    "geometry": Command(("lab", "geometry", "model", "--pairs", "scored.tsv", "-o", "OUT/g"), ("g/geometry.json",)),
    "init-model": Command(("lab", "init-model", "texts.txt", "-o", "OUT/m", "--width", "32", "--layers", "1"), ("m/model.safetensors",)),
    "vocabulary": Command(
        ("lab", "vocabulary", "model", "texts.txt", "-o", "OUT/m", "--size", "60"), ("m/*.safetensors", "m/tokenizer.json"),
        shares=True,
    ),
    "train": Command(TRAIN, ("run/model/*.safetensors", "run/model/tokenizer.json", "run/scores/*.safetensors")),
    "compare": Command(("lab", "compare", "recipe.yaml", "--seeds", "1", "-o", "OUT/c"), ("c/stages/*/model/*.safetensors",)),
    "synthesize": Command(
        (*SYNTHESIZE, "-o", "OUT/l"), ("l/*.parquet", "l/summary.json", "l/blocks/*"), shares=True
    ),
    "fit": Command(
        ("fit", "faq.tsv", "-o", "OUT/m", "--base", "base", "--budget", "60steps"), ("m/*.safetensors", "m/tokenizer.json")
    ),
    "demo": Command(
        ("demo", "--packages", "click,jinja2,rich", "--held-out", "rich", "--budget", "10steps", "--model", "base", "-o", "OUT/d"),
        ("d/model.fit/stages/*/model/*.safetensors",),
        (EXIT_OK, EXIT_NOT_BETTER),
    ),
}  # fmt: skip


def build_kitchen(folder: Path) -> Path:
    """Models, data and a recipe, which the commands name from within this folder."""
    build_model_folder("bert", folder / "model")
    build_small_t5(folder / "t5")
    (folder / "marian").mkdir()
    build_translation_model(folder / "marian", seed=0)
    texts = [f"{sentence} {number}" for number in range(100) for sentence in SENTENCES]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")
    (folder / "few.txt").write_text("\n".join(texts[:24]) + "\n", "utf-8")
    (folder / "four.txt").write_text("\n".join(texts[:4]) + "\n", "utf-8")
    pairs = [f"{text}\t{text[::-1]}" for text in texts[:64]]
    (folder / "pairs.tsv").write_text("\n".join(["anchor\tpositive", *pairs]) + "\n", "utf-8")
    scored = [f"a {a}\tb {b}\t{i}" for i, (a, b) in enumerate(pairwise(SENTENCES))]
    (folder / "scored.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *scored]) + "\n", "utf-8")
    learn = {"batch": 4, "steps": 6, "learning_rate": 1e-3, "log_every": 2, "checkpoint_seconds": 0}
    stage = {"method": "cross-lingual", "shape": "parallel", "data": "pairs.tsv", "queue": 8, "name": "learn", **learn}
    recipe = {"base": "model", "pooling": "mean", "stages": [stage], "evaluate": {"sets": ["scored.tsv"]}}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    small_base.pairs(folder / "faq.tsv")
    (folder / "base").symlink_to(small_base.build_base(folder / "bases"))
    return folder


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, minus the signal if it was killed, and what it printed."""

    code: int
    output: str

    def said(self) -> str:
        """What it printed, which must not be a traceback."""
        assert "Traceback" not in self.output, self.output[-2000:]
        return self.output


@dataclass
class Child:
    """A command that runs in a child."""

    pid: int
    log: Path
    _ended: Ended | None = field(default=None)

    def poll(self, options: int = os.WNOHANG) -> Ended | None:
        if self._ended is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self._ended = Ended(os.waitstatus_to_exitcode(status), self.log.read_text("utf-8", "replace"))
        return self._ended

    def wait(self) -> Ended:
        ended = self.poll(0)
        assert ended is not None
        return ended

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


def begin(kitchen: Path, log: Path, arguments: Sequence[str], before: Callable[[], None] = lambda: None) -> Child:
    """Start a command in a child; `before` runs there first, to break something."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return Child(child, log)
    code = 1
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        os.chdir(kitchen)
        os.environ["SENTLOOM_CACHE"] = str(log.parent / "cache")
        torch.set_num_threads(1)
        sys.argv = ["sentloom", *arguments]
        before()
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(kitchen: Path, log: Path, arguments: Sequence[str], before: Callable[[], None] = lambda: None) -> Ended:
    """Run a command in a child, to its end."""
    return begin(kitchen, log, arguments, before).wait()
