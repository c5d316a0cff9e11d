"""The seven sets of the STS suite: where each is found, how many pairs it has, and whether it has sub-sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.errors import InputError, MissingPart

SUITE = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
SUFFIXES = (".tsv", ".tsv.gz")


@dataclass(frozen=True)
class KnownSet:
    """A published set. STS-B and SICK-R are scored whole by all papers, whatever genres their rows name."""

    name: str
    pairs: int  # published, those with a gold score
    files: tuple[str, ...]  # names below `sts/`, without suffix, the first one that is there is read
    hub: str  # name@revision:split
    has_subsets: bool = True
    hub_note: str = ""


KNOWN = {
    known.name: known
    for known in (
        KnownSet("STS12", 3108, ("STS12",), "mteb/sts12-sts@a0d554a64d88156834ff5ae9920b964011b16384:test"),
        KnownSet("STS13", 1500, ("STS13",), "mteb/sts13-sts@7e90230a92c190f1bf69ae9002b8cea547a64cca:test"),
        KnownSet("STS14", 3750, ("STS14",), "mteb/sts14-sts@6031580fec1f6af667f0bd2da0a551cf4f0b2375:test"),
        KnownSet("STS15", 3000, ("STS15",), "mteb/sts15-sts@ae752c7c21bf194d8b67fd573edf7ae58183cbe3:test"),
        KnownSet("STS16", 1186, ("STS16",), "mteb/sts16-sts@4d8694f8f0e0100860b497b999b3dbed754a0513:test"),
        KnownSet(
            "STS-B",
            1379,
            ("STSB.test", "STS-B.test"),
            "mteb/stsbenchmark-sts@b0fddb56ed78048fa8b90373c8a3cfc37b684831:test",
            has_subsets=False,
        ),
        KnownSet(
            "STS-B/dev",
            1500,
            ("STSB.dev", "STS-B.dev"),
            "mteb/stsbenchmark-sts@b0fddb56ed78048fa8b90373c8a3cfc37b684831:validation",
            has_subsets=False,
        ),
        KnownSet(
            "SICK-R",
            4927,
            ("SICKR.test", "SICK-R.test", "SICK.test", "SICKR", "SICK-R"),
            "mteb/sickr-sts@20a6d6f312dd54037fe07a32d58e5e168867909d:test",
            has_subsets=False,
            hub_note="the hub's copy joins the train, trial and test parts of SICK",
        ),
    )
}


@dataclass(frozen=True)
class StsSet:
    """Pairs with gold scores. `subsets` names the sub-set of each pair; None where that is not known."""

    name: str
    sentences1: Sequence[str]
    sentences2: Sequence[str]
    gold: npt.NDArray[np.float64]
    subsets: Sequence[str] | None
    source: str = ""
    sha256: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StsSuite:
    """The sets that are at hand, and the names of those that are not."""

    sets: tuple[StsSet, ...]
    missing: tuple[str, ...] = ()


def load_suite(data: str | Path | None, names: Sequence[str] = SUITE) -> StsSuite:
    """The named sets, from a data folder or from the hub. Missing ones are named; it is an error if all are."""
    if data is not None and not Path(data).is_dir():
        raise InputError(str(data), "no such folder", "a data folder with sts/STS12.tsv ...", "check the path")
    sets, missing, reason = [], [], None
    for name in names:
        try:
            sets.append(load_set(name, data))
        except MissingPart as error:
            missing.append(name)
            reason = error
    if reason is not None and not sets:
        raise reason
    return StsSuite(tuple(sets), tuple(missing))


def load_set(name: str, data: str | Path | None) -> StsSet:
    """One set by its name, in any case, from the folder `data` (`sts/STS12.tsv` ...), or from the hub if it is None."""
    known = _known(name)
    source = known.hub if data is None else _find_file(Path(data), known)
    try:
        rows = read(source, shape=Shape.SCORED_PAIRS, keep=("subset",))
    except InputError as error:
        if data is not None:
            raise
        raise MissingPart(known.name, error.found, f"the set {source} on the hub", error.next_step) from error
    has_column = "subset" in rows.table.column_names
    whole = [known.name] * len(rows)
    return StsSet(
        known.name,
        rows.column("sentence1").to_pylist(),
        rows.column("sentence2").to_pylist(),
        rows.column("score").to_numpy(),
        (rows.column("subset").to_pylist() if has_column else None) if known.has_subsets else whole,
        str(source),
        rows.sha256,
        _count_note(known, len(rows), from_hub=data is None),
    )


def _known(name: str) -> KnownSet:
    by_name = {known.casefold(): one for known, one in KNOWN.items()}
    wanted = name.casefold().removesuffix("/test")  # without a part, the test set is meant
    if wanted not in by_name:
        raise InputError("STS set", repr(name), f"one of {', '.join(KNOWN)}", "name one of these")
    return by_name[wanted]


def _find_file(folder: Path, known: KnownSet) -> Path:
    """The set's file in a data folder or in its `sts` folder."""
    for place in (folder / "sts", folder):
        for name in known.files:
            for suffix in SUFFIXES:
                if (file := place / f"{name}{suffix}").is_file():
                    return file
    wanted = folder / "sts" / f"{known.files[0]}{SUFFIXES[0]}"
    raise MissingPart(
        known.name, f"no file {wanted}", "score, sentence1, sentence2, subset, tab-separated", "put it there"
    )


def _count_note(known: KnownSet, pairs: int, from_hub: bool) -> tuple[str, ...]:
    if pairs == known.pairs:
        return ()
    reason = f" ({known.hub_note})" if from_hub and known.hub_note else ""
    return (f"{pairs} pairs where {known.pairs} are published{reason}: not comparable with published scores",)
