"""Do two commits give the same numbers? Run this before and after a change that claims to change none.

    python tools/same_numbers.py OLD                    # OLD against the working tree
    python tools/same_numbers.py OLD NEW --data DIR     # two commits, and the suites on a data folder
    python tools/same_numbers.py OLD --only fit         # the jobs whose name contains "fit"
    python tools/same_numbers.py OLD --data DIR --suite multilingual --suite sentglue   # these suites alone

Every job runs the command line of either side (one thread, on the same inputs): twenty steps of every method, a ledger,
repaired and mined rows, the scores of every suite, and a fit measured in steps for each kind of data. Losses, weights,
rows and scores must be equal to the last bit; `--ignore low` leaves out numbers of that name which a change is known to
affect. A finished job is not run again (a suite is one job), so the same command resumes; `--output` holds everything.
A commit runs in a worktree of its own, which nobody edits meanwhile. Exit code 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from safetensors.numpy import load_file

from sentloom.data.corpus.opening import open_data

Facts = dict[str, Any]  # what a job measured: name -> number or hash
STEPS = 20
SUITES = ("sts", "transfer", "sentglue", "multilingual", "domain", "afs")
PROSE = "embedded:numpy"  # English sentences that every machine has: made-up words are refused as raw text
# Today's commands and options -> those of earlier commits ("": left out), the earliest first. They are tried in this
# order: an earlier command knew `check -o`, which wrote something else, but none of today's knows an earlier form.
ONE_LIST = {"lab": "", "check": "clean"}
SYNTHESIZER = {**ONE_LIST, "--writer": "--synthesizer", "--execution": "--rows", "rows=64": "64"}
FORMER: tuple[dict[str, str], ...] = (
    {**SYNTHESIZER, "init-model": "new", "--sampling": "--max-tokens", "length=12": "12"},
    {**SYNTHESIZER, "length=12": "max_tokens=12"},
    ONE_LIST,
    {},
)
IGNORED = ("second", "created", "path", "folder", "cost", "version")  # parts of a fact's name that may differ


# --- the inputs, the same for both sides ---


def words(seed: int) -> Iterator[str]:
    """Sentences of six made-up words, each word with a second form."""
    draw = random.Random(seed)
    known = [a + b + c for a in "bdfgk" for b in "aeiou" for c in ("lo", "mo", "ro")]
    while True:
        yield " ".join(draw.sample(known, 6))


def second_form(sentence: str) -> str:
    """The first two words stay, so that an untrained model finds a partner now and then."""
    first, second, *rest = sentence.split()
    return " ".join([first, second, *(word[::-1] for word in rest)])


def write_inputs(folder: Path, rows: int = 400) -> None:
    """One file per shape."""
    source = words(1)
    texts = list(dict.fromkeys(next(source) for _ in range(2 * rows)))[:rows]
    forms = list(map(second_form, texts))
    label = ("entailment", "neutral", "contradiction")
    tables = {
        "texts.tsv": [("text",), *((text,) for text in texts)],
        "pairs.tsv": [("anchor", "positive"), *zip(texts, forms, strict=True)],
        "triplets.tsv": [("anchor", "positive", "negative"), *zip(texts, forms, forms[1:] + forms[:1], strict=True)],
        "scored-pairs.tsv": [
            ("sentence1", "sentence2", "score"),
            *((text, forms[(n + n % 3) % rows], 5 - n % 3) for n, text in enumerate(texts)),
        ],
        "nli.tsv": [
            ("premise", "hypothesis", "label"),
            *((text, forms[(n + n % 3) % rows], label[n % 3]) for n, text in enumerate(texts)),
        ],
        "parallel.tsv": [("source", "target"), *zip(texts, forms, strict=True)],
        "classification.tsv": [("text", "label"), *((text, text.split()[0][0]) for text in texts)],
        "dirty.tsv": [("text",), *((f" {text}  ",) for text in (*texts, *texts[:9], "", "short", *forms))],
    }
    if not (folder / "prose.tsv").is_file():
        prose = dict.fromkeys(" ".join(text.split()) for text in open_data(PROSE).column("text").to_pylist())
        tables["prose.tsv"] = [("text",), *((text,) for text in list(prose)[:rows])]
    for name, table in tables.items():
        lines = "".join("\t".join(map(str, row)) + "\n" for row in table)
        (folder / name).write_text(lines, "utf-8")


# --- what a job leaves behind, as facts ---


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def weights(folder: Path) -> Facts:
    """Every tensor of every model below a folder."""
    facts = {}
    for number, path in enumerate(sorted(folder.rglob("model.safetensors"), key=_age)):
        if "checkpoints" not in path.parts:
            tensors = load_file(path)
            facts |= {f"weights {number} {name}": _digest(tensor.tobytes()) for name, tensor in tensors.items()}
    return facts


def losses(folder: Path) -> Facts:
    """The journals of every stage."""
    facts = {}
    for number, path in enumerate(sorted(folder.rglob("log.jsonl"), key=_age)):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        facts |= {f"journal {number} step {line['step']} loss": line["loss"] for line in lines if "loss" in line}
    return facts


def candidates(folder: Path) -> Facts:
    """The candidates of a ledger: their texts and scores."""
    paths = sorted(folder.rglob("blocks/*.parquet"))
    rows = [row for path in paths for row in pq.read_table(path, columns=["kind", "text", "score"]).to_pylist()]
    return {f"row {number}": list(row.values()) for number, row in enumerate(rows)}


def lines(folder: Path) -> Facts:
    """The lines of the file that a command wrote."""
    return {f"line {n}": line for n, line in enumerate((folder / "rows.tsv").read_text("utf-8").split("\n"))}


def scores(folder: Path) -> Facts:
    """Every number of the score files."""
    files = sorted(folder.glob("*.json"))
    return {name: value for path in files for name, value in _numbers(json.loads(path.read_text("utf-8")), path.stem)}


def verdicts(folder: Path) -> Facts:
    """A fit's verdict, its scores, and the score of every run."""
    (path,) = [path for path in folder.rglob("*.json") if path.name in ("story.json", "report.json")][:1]
    story = json.loads(path.read_text("utf-8"))
    parts = {"verdict": story["verdict"], "measures": story["measures"], "runs": story["runs"]}
    return dict(_numbers(parts, "fit")) | {"verdict": story["verdict"]}


def _numbers(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, f"{name}.{key}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _numbers(part, f"{name}.{place}")
    elif isinstance(value, int | float):
        yield name, value


def _age(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, str(path)


# --- the jobs ---


@dataclass(frozen=True)
class Job:
    """Commands that run in a folder of their own, and how their output becomes facts."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    facts: tuple[Callable[[Path], Facts], ...]
    exits: tuple[int, ...] = (0,)
    recipe: dict[str, Any] | None = None  # written as recipe.yaml first


def training(name: str, data: str, inputs: Path, base: str = "bert", **stage: Any) -> Job:
    """Twenty steps of one method on a small model; pooling is stated, so that no default decides."""
    settings = {"batch": 16, "steps": STEPS, "learning_rate": 1e-3, "log_every": 1}
    stage = {"name": "trained", "data": str(inputs / f"{data}.tsv"), **settings, **stage}
    if base == "t5":
        recipe: dict[str, Any] = {"stages": [stage | {"model": str(inputs / base)}]}
    else:
        pooling = "first" if "guided" in name else "mean"
        recipe = {"stages": [stage], "base": str(inputs / base), "max_length": 32, "pooling": pooling}
    return Job(f"train {name}", (("lab", "train", "recipe.yaml", "-o", "out"),), (losses, weights), recipe=recipe)


def all_jobs(inputs: Path, data: Path | None) -> list[Job]:
    """In the order they run: the models first."""
    build = ("lab", "init-model", str(inputs / "texts.tsv"), "--vocabulary", "300", "--layers", "2", "--width", "64")
    jobs = [
        Job("model bert", ((*build, "--family", "bert", "-o", "model"),), (weights,)),
        Job("model t5", ((*build, "--family", "t5", "-o", "model"),), (weights,)),
        training("simcse", "texts", inputs, method="simcse"),
        *(
            training(f"self-guided {objective}", "texts", inputs, method="self-guided", objective=objective)
            for objective in ("sg", "opt1", "opt2", "opt3")
        ),
        training("bootstrapped", "pairs", inputs, method="bootstrapped"),
        training("contrastive-bt", "pairs", inputs, method="contrastive-bt"),
        training("mlm", "texts", inputs, method="mlm"),
        training("contrastive pairs", "pairs", inputs, method="contrastive", directions="both"),
        training("contrastive triplets", "triplets", inputs, method="contrastive"),
        training("nli-classification", "nli", inputs, method="nli-classification"),
        training("cross-lingual", "parallel", inputs, method="cross-lingual", queue=64),
        training("mse-distillation", "parallel", inputs, method="mse-distillation"),
        training("denoising", "texts", inputs, "t5", method="denoising"),
        training("synthesizer", "nli", inputs, "t5", method="synthesizer", held_out=0.1),
    ]
    write = ("lab", "synthesize", str(inputs / "texts.tsv"), "--execution", "rows=64", "--sampling", "length=12")
    writer = ("--writer", str(inputs / "synthesizer"), "-o", "ledger")
    jobs.append(Job("ledger", ((*write, *writer),), (candidates,)))
    for name, making in {
        "repaired": ("check", str(inputs / "dirty.tsv"), "--min-words", "2"),
        "mined": ("lab", "mine", str(inputs / "pairs.tsv")),
        "rewritten": ("lab", "views", str(inputs / "prose.tsv"), "--kind", "synonyms"),
    }.items():
        jobs.append(Job(f"rows {name}", ((*making, "-o", "rows.tsv"),), (lines,)))
    for kind in ("prose", "pairs", "triplets", "scored-pairs", "nli", "parallel", "classification"):
        fit = ("fit", str(inputs / f"{kind}.tsv"), "--base", "embedded", "--budget", "60steps", "-o", "model")
        jobs.append(Job(f"fit {kind}", (fit,), (verdicts, weights), exits=(0, 3)))
    for suite in SUITES if data else ():  # a suite whose data is not there ends with 2, on both sides
        evaluate = ("evaluate", "embedded", "--suite", suite, "--data", str(data), "--cache-size", "0", "--unchecked")
        jobs.append(Job(f"suite {suite}", ((*evaluate, "-o", "scores.json"),), (scores,), exits=(0, 2)))
    return jobs


# --- running them ---


@dataclass(frozen=True)
class Side:
    """One commit: its source, its entry points as if it were installed, and a folder for what it gives."""

    name: str
    source: Path
    installed: Path
    folder: Path

    def command(self, arguments: Sequence[str], work: Path) -> tuple[int, str]:
        """Run the command line of this side."""
        for names in FORMER:
            words = [names.get(word, word) for word in arguments]
            ended = self.python(["-m", "sentloom", *filter(None, words)], work)
            if "No such command" not in ended.stderr and "No such option" not in ended.stderr:
                break
        return ended.returncode, ended.stdout + ended.stderr

    def python(self, arguments: Sequence[str], work: Path) -> subprocess.CompletedProcess[str]:
        """Run Python on this side's source, offline, in one thread and with a cache of its own."""
        environment = {**os.environ, "PYTHONPATH": f"{self.installed}{os.pathsep}{self.source / 'src'}"}
        environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
        environment |= {"SENTLOOM_CACHE": str(work / "cache")}
        return subprocess.run([sys.executable, *arguments], cwd=work, env=environment, capture_output=True, text=True)

    def install(self) -> None:
        """Write the metadata that installing would: the environment's own is that of another commit."""
        project = tomllib.loads((self.source / "pyproject.toml").read_text("utf-8"))["project"]
        metadata = self.installed / f"sentloom-{project['version']}.dist-info"
        metadata.mkdir(parents=True, exist_ok=True)
        (metadata / "METADATA").write_text(f"Name: sentloom\nVersion: {project['version']}\n", "utf-8")
        with (metadata / "entry_points.txt").open("w", encoding="utf-8") as file:
            for group, points in project.get("entry-points", {}).items():
                print(f"[{group}]", *(f"{name} = {place}" for name, place in points.items()), sep="\n", file=file)
        ran = self.python(["-c", "import sentloom; print(sentloom.__file__)"], self.installed)
        if not Path(ran.stdout.strip()).is_relative_to(self.source):
            sys.exit(f"{self.name}: runs {ran.stdout.strip()}, not {self.source}\n{ran.stderr}")

    def run(self, job: Job) -> Facts:
        """The facts of a job, measured once."""
        work = self.folder / job.name.replace(" ", "-")
        done = work / "facts.json"
        if not done.is_file():
            work.mkdir(parents=True, exist_ok=True)
            if job.recipe:
                (work / "recipe.yaml").write_text(yaml.safe_dump(job.recipe, sort_keys=False), "utf-8")
            for arguments in job.commands:
                code, output = self.command(arguments, work)
                if code not in job.exits:
                    sys.exit(f"{self.name}: {job.name} ended with {code}: {' '.join(arguments)}\n{output}")
            facts = {"exit": code} | {k: v for read in job.facts if code != 2 for k, v in read(work).items()}
            done.write_text(json.dumps(facts), "utf-8")
        return json.loads(done.read_text("utf-8"))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def find_side(name: str, commit: str | None, output: Path) -> Side:
    """A commit in a git worktree of its own, or the working tree; results are stored by content."""
    if commit is None:
        source = Path(__file__).resolve().parents[1]
        place = f"{_git('rev-parse', 'HEAD')[:12]}-{_digest(_changes(source))}"
    else:
        place = _git("rev-parse", f"{commit}^{{commit}}")[:12]
        source = output / f"{place}-source"
        if not source.is_dir():
            _git("worktree", "add", "--quiet", "--detach", str(source), commit)
    side = Side(name, source, output / f"{place}-installed", output / place)
    side.install()
    return side


def _changes(source: Path) -> bytes:
    """What the working tree has and its commit has not, new files too."""
    new = _git("ls-files", "--others", "--exclude-standard", str(source / "src")).splitlines()
    return _git("diff", "HEAD").encode() + b"".join(Path(path).read_bytes() for path in new)


def place_models(side: Side, jobs: Sequence[Job], inputs: Path) -> None:
    """What later jobs start from comes from one side, so that both start from the same."""
    made = {"bert": "model bert", "t5": "model t5", "synthesizer": "train synthesizer"}
    for name, job in made.items():
        if not (inputs / name).exists():
            side.run(next(known for known in jobs if known.name == job))
            (model,) = [path.parent for path in (side.folder / job.replace(" ", "-")).rglob("model/config.json")][:1]
            (inputs / name).symlink_to(model.resolve(), target_is_directory=True)


def differences(old: Facts, new: Facts, ignored: Sequence[str] = ()) -> list[str]:
    """Facts that are not the same on both sides; those whose last part is `ignored` are left out."""
    names = [name for name in old.keys() | new.keys() if not any(part in name for part in IGNORED)]
    names = [name for name in names if name.rpartition(".")[2] not in ignored]
    return sorted(f"{name}: {old.get(name)} -> {new.get(name)}" for name in names if old.get(name) != new.get(name))


def main() -> None:
    """Run every job on both sides and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="a commit")
    parser.add_argument("new", nargs="?", help="a commit; by default the working tree")
    parser.add_argument("--data", type=Path, help="a data folder: without it, no suite is scored")
    parser.add_argument("--only", default="", help="only jobs whose name contains this")
    parser.add_argument(
        "--suite", action="append", choices=SUITES, help="only this suite, and no other job; repeatable"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="NAME", help="such as low, high, p; repeatable"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("out/same-numbers"))
    chosen = parser.parse_args()
    output = chosen.output.resolve()
    inputs = output / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    write_inputs(inputs)
    sides = [find_side(name, commit, output) for name, commit in (("old", chosen.old), ("new", chosen.new))]
    jobs = all_jobs(inputs, chosen.data and chosen.data.resolve())
    if chosen.suite and not chosen.data:
        parser.error("--suite needs --data")
    suites = [f"suite {name}" for name in chosen.suite or ()]
    selected = [job for job in jobs if (job.name in suites if suites else chosen.only in job.name)]
    if not all(job.name.startswith(("suite", "fit", "rows")) for job in selected):  # these use the embedded encoder
        place_models(sides[0], jobs, inputs)
    equal = [_compared(job, *sides, chosen.ignore) for job in selected]
    sys.exit(0 if all(equal) else 1)


def _compared(job: Job, old_side: Side, new_side: Side, ignored: Sequence[str]) -> bool:
    """Run a job on both sides and print what differs; whether nothing does."""
    old, new = old_side.run(job), new_side.run(job)
    different = differences(old, new, ignored)
    ended = "" if old["exit"] == new["exit"] == 0 else f" (exit {old['exit']}, {new['exit']})"
    counts = f"{len(different)} of {len(old)} differ" if different else f"{len(old)} equal"
    print(f"{job.name}: {counts}{ended}", flush=True)
    for line in different[:10]:
        print(f"  {line}")
    return not different


if __name__ == "__main__":
    main()
