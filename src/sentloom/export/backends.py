"""Run an encoder with another library: exported to the cache on first use, and proven like every export.

8-bit forms give vectors that are close to the model's, and may lose half a point of score.

`auto` measures once per model and machine which proven form is fastest, torch included.
"""

import hashlib
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sentloom.encoder import Encoder
from sentloom.encoder.formats.format import ReadOnlyBackbone
from sentloom.encoder.formats.registry import AUTO, TORCH, backend_names, format_for, tried_names
from sentloom.encoder.golden import golden_texts
from sentloom.errors import DamagedFile, InputError, SentloomError, option
from sentloom.export.export import export
from sentloom.files import cache_folder, is_sealed, read_record, remove, seal, write_record
from sentloom.progress import note

ROUNDS = 5  # in each, every form encodes the texts once; its fastest round counts
MOST_LOST = 0.5  # points that 8-bit weights may lose
CLEARLY = 0.95  # of torch's time: another form has to be faster than that

Log = Callable[[str], None]


def with_backend(encoder: Encoder, backend: str, log: Log = note) -> Encoder:
    """The encoder as `backend` runs it. An exported model stays as it is, and GPUs run torch."""
    if backend not in backend_names():
        expected = f"one of {', '.join(backend_names())}"
        raise InputError("backend", f"{backend!r} is unknown", expected, "correct the name")
    if backend == TORCH or isinstance(encoder.backbone, ReadOnlyBackbone) or encoder.device.type != "cpu":
        return encoder
    if encoder.precision != "fp32":
        if backend == AUTO:
            return encoder  # only torch runs in another precision
        problem = f"{backend} does not run in {encoder.precision}"
        raise InputError(option("backend"), problem, TORCH, f"leave out {option('precision')} or {option('backend')}")
    place = cache_folder() / "exports" / _key(encoder)
    chosen = _fastest(encoder, place, log) if backend == AUTO else backend
    return encoder if chosen == TORCH else _exported(encoder, chosen, place, log)


def _fastest(encoder: Encoder, place: Path, log: Log) -> str:
    """The name of the fastest form, from an earlier measurement if there is one."""
    record = place / "fastest.json"
    if record.is_file():
        try:
            return str(read_record(record, "")["fastest"])
        except (DamagedFile, KeyError):
            pass  # it is measured again
    log("Measuring once which backend is fastest on this machine ...")
    proven, refused = _proven(encoder, place, log)
    seconds = interleaved({name: partial(form.encode, golden_texts()) for name, form in proven.items()})
    chosen = choose(seconds)
    write_record(record, {"fastest": chosen, "seconds": seconds, "refused": refused})
    for name in tried_names():
        if name != chosen:
            remove(place / name)
    log(f"backend {chosen}: " + ", ".join(f"{name} {value:.3f} s" for name, value in seconds.items()))
    return chosen


def _proven(encoder: Encoder, place: Path, log: Log) -> tuple[dict[str, Encoder], dict[str, str]]:
    """Every form that can be written and is proven, and why the others are not."""
    proven, refused = {TORCH: encoder}, {}
    for name in tried_names():
        try:
            proven[name] = _exported(encoder, name, place, log)
        except SentloomError as error:
            refused[name] = str(error)
            log(f"not {name}: {error.problem}")
    return proven, refused


def _exported(encoder: Encoder, name: str, place: Path, log: Log) -> Encoder:
    folder = place / name
    if not is_sealed(folder):
        export(encoder, name, folder, accept_loss=MOST_LOST, log=log)
        seal(folder)
    return Encoder.load(folder, device="cpu", prompts=encoder.prompts)


def interleaved(
    runs: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The seconds of the fastest round of each run; runs alternate, so that a busy moment slows all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()  # not counted: memory is allocated, and code is loaded
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: min(rounds) for name, rounds in seconds.items()}


def choose(seconds: Mapping[str, float]) -> str:
    """The fastest form if it is clearly faster than torch."""
    best = min(seconds, key=lambda name: seconds[name])
    return best if seconds[best] < CLEARLY * seconds[TORCH] else TORCH


def _key(encoder: Encoder) -> str:
    """A hash of the model, the CPU and the libraries."""
    packages = dict.fromkeys([TORCH, *(format_for(name).package for name in tried_names())])
    parts = [encoder.fingerprint(), cpu_name(), *map(_version, packages)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def cpu_name(lines: Sequence[str] | None = None) -> str:
    """The CPU's model and its instructions, as Linux names them; elsewhere what Python knows."""
    if lines is None:
        file = Path("/proc/cpuinfo")
        lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    keys = ("model name", "flags", "CPU part", "Features")
    facts = dict.fromkeys(line for line in lines if line.startswith(keys))
    return "\n".join(facts) or f"{platform.machine()} {platform.processor()}"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} missing"
