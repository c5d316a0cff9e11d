"""Full disks, read-only folders, failed fsyncs, and damaged files: one sentence with the path, and the work goes on."""

import errno
import json
import os
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from sentloom.errors import DamagedFile
from sentloom.evaluation.bench import read_scores, write_scores
from sentloom.evaluation.task import Score
from sentloom.files import is_sealed, read_record, read_result, seal, write_record, write_result
from sentloom.search.vectors import VectorCache
from sentloom.training.checkpoints import Checkpoint, newest_checkpoint, read_best, write_best, write_checkpoint
from sentloom.writing.ledger import Ledger
from sentloom.writing.views.pairs import ViewCache
from tests.faults.commands import COMMANDS, EXIT_REFUSED, Command, Ended, build_kitchen, run
from tests.faults.conftest import Tally
from tests.writing.ledgers import fill, plan_of, raw_texts

FAULT = "4. full disks, read-only folders, damaged checkpoints"
ASKED = 200

PAGE = 4096
# None where the output is a page or two; `evaluate` only loses its cache.
SIZES = {
    name: {
        "fit": 1,
        "demo": 1,
        "evaluate": 0,
        "views": 0,
        "translate": 0,
        "check": 0,
        "train": 8,
        "init-model": 6,
        "encode": 6,
    }.get(name, 3)
    for name in COMMANDS
}
FSYNCS = {"train": 12, "init-model": 3, "encode": 3, "synthesize": 4, "vocabulary": 3}
LIMITED = ("encode", "init-model", "train", "vocabulary", "synthesize")
DAMAGES = 60  # of checkpoints; of each cache a third


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_kitchen(tmp_path_factory.mktemp("kitchen"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small file system with the given options, or changes them; the test is skipped where nobody may."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = False

    def mount(options: str) -> Path:
        nonlocal mounted
        how = f"remount,{options}" if mounted else options
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", how, "tmpfs", place], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("mounting a small file system needs root")
        mounted = True
        return place

    yield mount
    if mounted:
        subprocess.run(["umount", "--lazy", place], check=True)


def assert_refused(ended: Ended, *places: Path) -> None:
    """One sentence that names a path on the disk, in one of these places, and exit code 2."""
    said = ended.said()
    assert ended.code == EXIT_REFUSED, f"exit code {ended.code}: {said}"
    sentence = said.rpartition("error: ")[2].partition("\n")[0]
    assert any(str(place) in sentence for place in places), said
    assert "[(" not in said


def finish(command: Command, kitchen: Path, log: Path, out: Path) -> dict[str, str]:
    ended = run(kitchen, log, command.at(out))
    assert ended.code in command.codes, ended.output[-2000:]
    return command.outputs(out)


def pages(folder: Path) -> int:
    """How much room the files of a folder take."""
    return sum(-(-path.stat().st_size // PAGE) for path in folder.rglob("*") if path.is_file())


def check_full_disk(name: str, kitchen: Path, tmp_path: Path, disk: Callable[[str], Path], tally: Tally) -> None:
    command, rng, log = COMMANDS[name], random.Random(name), tmp_path / "log"
    (tmp_path / "whole").mkdir()
    whole = finish(command, kitchen, log, tmp_path / "whole")
    most = pages(tmp_path / "whole")
    for number in range(SIZES[name]):
        size = rng.randrange(1, most)
        with tally.case(f"{name}: {size} of {most} pages"):
            place = disk(f"size={PAGE * size}")
            assert_refused(run(kitchen, log, command.at(place)), place)
            disk("size=200m")
            assert finish(command, kitchen, log, place) == whole, number
            for path in place.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_full_disk_while_a_model_is_made(kitchen, tmp_path, disk, tally):
    check_full_disk("init-model", kitchen, tmp_path, disk, tally)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, count in SIZES.items() if count and name != "init-model"])
def test_a_full_disk(name, kitchen, tmp_path, disk, tally):
    check_full_disk(name, kitchen, tmp_path, disk, tally)


@pytest.mark.long
def test_a_full_disk_costs_an_evaluation_its_cache_only(kitchen, tmp_path, disk, tally):
    command = COMMANDS["evaluate"]
    (tmp_path / "whole").mkdir()
    whole = finish(command, kitchen, tmp_path / "log", tmp_path / "whole")
    for size in range(1, 5):
        with tally.case(f"{size} pages"):
            place = disk(f"size={PAGE * size}")
            ended = run(kitchen, tmp_path / "log", [*command.at(tmp_path / "whole"), "--cache", str(place / "cache")])
            assert (ended.code, command.outputs(tmp_path / "whole")) == (0, whole), ended.said()
            assert "are not cached in" in ended.said() or "cannot be cached in" in ended.said() or size > 1
            shutil.rmtree(place / "cache")


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_cannot_be_written(name, kitchen, tmp_path, disk, tally):
    command, below = COMMANDS[name], tmp_path / "file"
    below.write_text("a file")
    with tally.case(f"{name}: below a file"):
        assert_refused(run(kitchen, tmp_path / "log", command.at(below)), below)
    place = disk("size=200m")
    disk("ro")
    with tally.case(f"{name}: read-only"):
        assert_refused(run(kitchen, tmp_path / "log", command.at(place)), place)


@pytest.mark.long
@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_of_the_size_of_files(name, kitchen, tmp_path, tally):
    """As a quota does it, and without root. It also holds for the scratch folder, so that one may be named instead."""
    command, rng = COMMANDS[name], random.Random(name)
    (tmp_path / "whole").mkdir()
    whole = finish(command, kitchen, tmp_path / "log", tmp_path / "whole")
    largest = max(path.stat().st_size for path in (tmp_path / "whole").rglob("*") if path.is_file())
    for number in range(2):
        limit, out = rng.randrange(1000, largest), tmp_path / str(number)
        with tally.case(f"{name}: {limit} bytes"):
            out.mkdir()
            lower = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # noqa: B023, E731
            assert_refused(run(kitchen, tmp_path / "log", command.at(out), lower), out, tmp_path / "scratch")
            assert finish(command, kitchen, tmp_path / "log", out) == whole


def fail_fsync(number: int) -> None:
    """From that call on, no fsync succeeds."""
    real, calls = os.fsync, iter(range(10**9))

    def fsync(handle: int) -> None:
        if next(calls) >= number:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    os.fsync = fsync


@pytest.mark.long
@pytest.mark.parametrize("name", FSYNCS)
def test_an_fsync_that_fails(name, kitchen, tmp_path, tally):
    command, rng = COMMANDS[name], random.Random(name)
    (tmp_path / "whole").mkdir()
    whole = finish(command, kitchen, tmp_path / "log", tmp_path / "whole")
    for number in range(FSYNCS[name]):
        first, out = rng.randrange(4 * number + 1), tmp_path / str(number)
        with tally.case(f"{name}: the fsync of number {first}"):
            out.mkdir()
            ended = run(kitchen, tmp_path / "log", command.at(out), lambda: fail_fsync(first))  # noqa: B023
            if ended.code not in command.codes:  # else it needed fewer
                assert_refused(ended, out)
            if command.outputs(out) != whole:
                assert finish(command, kitchen, tmp_path / "log", out) == whole


def damage(path: Path, rng: random.Random) -> str:
    """Flip a bit, cut it, fill a part with zeros, or remove it, anywhere in the file."""
    content = bytearray(path.read_bytes())
    at, how = rng.randrange(len(content)), rng.choice(["flip", "flip", "flip", "cut", "zeros", "gone"])
    if how == "gone":
        path.unlink()
        return how
    if how == "flip":
        content[at] ^= 1 << rng.randrange(8)
    path.write_bytes(content[:at] if how == "cut" else content[:at] + bytes(64) + content[at + 64 :] if how == "zeros" else content)  # fmt: skip
    return f"{how} at {at} of {path.name}"


def checkpoint(step: int, folder: Path) -> Checkpoint:
    tensors = {"w": torch.full((300,), float(step)), "n": torch.tensor(step)}
    best = {
        "step": step,
        "score": 0.5 * step,
        "weights": write_best(folder, step, {"w": torch.full((90,), float(step))}),
    }
    return Checkpoint(tensors, {"m": torch.arange(100.0) * step}, {"step": step, "best": best, "scores": [[0, 1.5]]})


def same(one: Checkpoint, other: Checkpoint) -> bool:
    states = [(one.state, other.state), (one.optimizer, other.optimizer)]
    equal = all(a.keys() == b.keys() and all(a[name].equal(b[name]) for name in a) for a, b in states)
    return equal and one.facts == json.loads(json.dumps(other.facts))


def test_damaged_checkpoints(tmp_path, tally):
    """The newest is used as it was written or not at all, and then the one before it."""
    whole, rng = tmp_path / "whole", random.Random(4)
    written = {}
    for step in (10, 20):
        written[step] = checkpoint(step, whole)
        write_checkpoint(whole, written[step])
    for number in range(DAMAGES):
        folder = shutil.copytree(whole, tmp_path / str(number))
        path = rng.choice(sorted([*folder.glob("step-00000020/*"), folder / "best-00000020.safetensors"]))
        with tally.case(damage(path, rng)):
            told: list[str] = []
            found = newest_checkpoint(folder, told.append)
            assert found is not None
            assert same(found, written[found.facts["step"]])
            best = read_best(folder, found.facts["best"]["weights"])
            assert best["w"].equal(torch.full((90,), float(found.facts["step"])))
            assert bool(told) == (found.facts["step"] == 10)


def test_a_best_that_is_damaged_at_the_end_is_refused(tmp_path, tally):
    for number in range(DAMAGES // 3):
        facts = write_best(tmp_path, number, {"w": torch.arange(90.0)})
        what = damage(tmp_path / facts["file"], random.Random(number))
        with tally.case(what), pytest.raises(DamagedFile, match=facts["file"]):
            read_best(tmp_path, facts)


def record_cache(folder: Path) -> Callable[[], object]:
    write_record(folder / "a.json", {"score": 71.25, "set": "STS-B"})

    def read() -> object:
        try:
            return read_record(folder / "a.json", "") if (folder / "a.json").exists() else None
        except DamagedFile:
            return None

    return read


def result_cache(folder: Path) -> Callable[[], object]:
    (folder / "model").mkdir()
    (folder / "model/weights").write_bytes(bytes(range(256)))
    write_result(folder, {"steps": 6}, "model")
    return lambda: read_result(folder, lambda text: None)


def sealed_vectors(folder: Path) -> Callable[[], object]:
    np.save(folder / "v.npy", np.arange(64.0))
    seal(folder / "v.npy")
    return lambda: np.load(folder / "v.npy").tolist() if is_sealed(folder / "v.npy") else None


def cached_scores(folder: Path) -> Callable[[], object]:
    write_scores(folder / "s.safetensors", {"f1": Score("f1", np.array([[0.5, 1.0]]), np.array([3]))})

    def read() -> object:
        found = read_scores(folder / "s.safetensors")
        return found and [(name, one.metric, one.items.tolist(), one.weighted) for name, one in found.items()]

    return read


def vector_shards(folder: Path) -> Callable[[], object]:
    texts = [f"text {number}" for number in range(8)]

    def read(encode: Callable[[list[str]], np.ndarray]) -> object:
        return VectorCache(folder).vectors("model", texts, encode).tolist()

    right = lambda some: np.array([[int(text[5:]), 1.0] for text in some], np.float32)  # noqa: E731
    read(right)
    return lambda: read(right)


def view_shards(folder: Path) -> Callable[[], object]:
    views = ViewCache(folder, "upper")
    views.add(["a", "b"], ["A", "B"])
    return lambda: views.table().to_pylist() or None


def ledger_blocks(folder: Path) -> Callable[[], object]:
    raw = raw_texts(2)
    fill(Ledger.begin(folder, plan_of(raw)), raw)
    (folder / "plan.json").rename(folder.with_suffix(".plan"))  # only the block is damaged here

    def read() -> object:
        table = Ledger(folder, folder.with_suffix(".plan").read_text()).read(0)
        return table and table.to_pylist()

    return read


CACHES = {one.__name__: one for one in (record_cache, result_cache, sealed_vectors, cached_scores, vector_shards, view_shards, ledger_blocks)}  # fmt: skip


@pytest.mark.parametrize("name", CACHES)
def test_a_damaged_cache_gives_what_was_written_or_nothing(name, tmp_path, tally, capsys):
    for number in range(DAMAGES // 3):
        folder, rng = tmp_path / str(number), random.Random(number)
        folder.mkdir()
        read = CACHES[name](folder)
        whole = read()
        assert whole is not None
        path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        with tally.case(damage(path, rng)):
            assert read() in (whole, None)


@pytest.mark.long
@pytest.mark.parametrize("pattern", ["scores/*.safetensors", "vectors/*.npy", "stages/*/result.json", "stages/*/model/*.safetensors"])  # fmt: skip
def test_a_run_over_damaged_files_ends_the_same(pattern, kitchen, tmp_path, tally):
    command, rng = COMMANDS["train"], random.Random(pattern)
    whole = finish(command, kitchen, tmp_path / "log", tmp_path)
    for number in range(2):
        path = rng.choice(sorted((tmp_path / "run").glob(pattern)))
        if "vectors" in pattern:  # they are read where the stage is trained
            shutil.rmtree(tmp_path / "run/stages")
        with tally.case(f"{number}: {damage(path, rng)}"):
            assert finish(command, kitchen, tmp_path / "log", tmp_path) == whole
