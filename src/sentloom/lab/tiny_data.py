"""Data for `--scale tiny`: a small file for everything that the tables of the papers train and score on.

All of it comes from triplets of sentences: those that are shipped, or those of a data folder. The first ones are
trained on, the others scored on. Sets that the data folder has are cut to a few rows, the others are made up.
"""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path

from sentloom.data.shapes import Shape
from sentloom.evaluation.suites.set_source import SUFFIXES, SetPart
from sentloom.files import new_folder
from sentloom.lab.suites import domain, multilingual, sentglue, transfer
from sentloom.lab.suites import sts as afs
from sentloom.lab.suites.probed_sets import ProbedSet
from sentloom.lab.suites.sts import STS_PARTS

TRAINED, SCORED, ROWS = 40, 60, 60  # triplets, and the rows of a set
TRAINING = {  # by environment variable: what a recipe reads
    "NLI": "nli.tsv",
    "NLI_ZH": "nli.zh.tsv",
    "RAW": "sentences.txt",
    "BOOKS": "books.txt",
    "DOMAIN": "domain.txt",
    "AFS": "afs.txt",
    "QA": "qa.tsv",
    "PARALLEL": "parallel.tsv",
    "SMD": "parallel.smd.tsv",
    "TRANSLATIONS": "translations.tsv",
    "STSB_NLI": "stsb-nli.tsv",
    "GLOVE": "words.txt",
}
Triplet = tuple[str, str, str]
Columns = Mapping[str, Iterable[object]]


def write_tiny_data(folder: Path, given: Path | None) -> dict[str, str]:
    """Write the files unless they are there; returns the value of every variable that a table may have."""
    if not folder.is_dir():
        with new_folder(folder) as part:
            _write_all(part, given)
    values = {name: str(folder / file) for name, file in TRAINING.items()}
    return values | {"SENTLOOM_DATA": str(folder / "data")}


def _write_all(folder: Path, given: Path | None) -> None:
    triplets = _triplets(given)
    trained = triplets[:TRAINED]
    _write_training(folder, trained)
    for name, columns in (_sets(triplets[TRAINED:]) | {"sts/STSB.train": _scored(trained)}).items():
        path = folder / "data" / f"{name}{SUFFIXES[0]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_shortened(given, name) or _table(columns), "utf-8")


def _triplets(given: Path | None) -> list[Triplet]:
    shipped = Path(str(files("sentloom"))) / "general" / "triplets.tsv"
    own = given / "nli" / "triplets.en.tsv" if given else shipped
    lines = (own if own.is_file() else shipped).read_text("utf-8").splitlines()[1 : TRAINED + SCORED + 1]
    return [(cells[0], cells[1], cells[2]) for cells in (line.split("\t") for line in lines)]


def _shortened(given: Path | None, name: str) -> str | None:
    """Evenly spaced rows of a set that the data folder has."""
    for suffix in SUFFIXES if given else ():
        path = given / f"{name}{suffix}"  # type: ignore[operator]
        if path.is_file():
            content = path.read_bytes()
            head, *rows = (gzip.decompress(content) if suffix.endswith(".gz") else content).decode().splitlines()
            return "\n".join([head, *rows[:: max(1, len(rows) // ROWS)][:ROWS]]) + "\n"
    return None


# What is trained on


def _write_training(folder: Path, triplets: Sequence[Triplet]) -> None:
    anchors, positives, negatives = zip(*triplets, strict=True)
    nli = _nli(triplets)
    pairs = _table({"anchor": anchors, "positive": positives})
    translations = _table({"source": anchors, "target": map(_reversed, anchors)})
    texts = {name: "\n".join(some) + "\n" for name, some in (("raw", (*anchors, *negatives)), ("some", positives))}
    content = {
        **dict.fromkeys(("NLI", "NLI_ZH", "STSB_NLI"), _table(nli)),
        "RAW": texts["raw"],
        **dict.fromkeys(("BOOKS", "DOMAIN", "AFS"), texts["some"]),
        "QA": pairs,
        **dict.fromkeys(("PARALLEL", "SMD", "TRANSLATIONS"), translations),
        "GLOVE": "".join(f"{word} {at % 7} {at % 5} {at % 3} 1\n" for at, word in enumerate(_words(triplets))),
    }
    for name, text in content.items():
        (folder / TRAINING[name]).write_text(text, "utf-8")


def _nli(triplets: Sequence[Triplet]) -> Columns:
    """Premise, hypothesis and label: what a triplet entails and contradicts, and an unrelated sentence."""
    others = [*triplets[1:], triplets[0]]
    rows = [
        row
        for (anchor, positive, negative), other in zip(triplets, others, strict=True)
        for row in (
            (anchor, positive, "entailment"),
            (anchor, negative, "contradiction"),
            (anchor, other[0], "neutral"),
        )
    ]
    return dict(zip(("premise", "hypothesis", "label"), zip(*rows, strict=True), strict=True))


def _words(triplets: Sequence[Triplet]) -> list[str]:
    return sorted({word.strip(".,?!") for triplet in triplets for text in triplet for word in text.split()} - {""})


def _reversed(text: str) -> str:
    """A substitute for a translation: the words from the last to the first."""
    return " ".join(reversed(text.split()))


# What is scored on


def _sets(triplets: Sequence[Triplet]) -> dict[str, Columns]:
    """The columns of each set, by the name of its file."""
    scored = [*STS_PARTS.values(), *multilingual.PARTS.values(), domain.BIOSSES]
    found: dict[str, Columns] = {
        part.files[0]: {"subset": cycle("ab"), **_scored(triplets)} for part in scored if "tatoeba" not in part.files[0]
    }
    for one in (*transfer.SETS.values(), *sentglue.SETS.values()):
        found |= {part.files[0]: _probed(one[0], part, triplets) for part in one[0].parts}
    labelled = _labelled(triplets)
    found |= {part.files[0]: labelled for part in (domain.ASKUBUNTU, domain.TWITTER_URL, domain.PIT)}
    found[afs.PART.files[0]] = {"topic": cycle(afs.TOPICS), **_scored(triplets)}
    for forum in domain.FORUMS:
        found |= _forum(forum, triplets[:5])
    return found


def _scored(triplets: Sequence[Triplet]) -> Columns:
    rows = [row for a, p, n in triplets for row in ((5.0, a, p), (1.0, a, n))][:ROWS]
    spread = [(score - at % 7 / 10, *texts) for at, (score, *texts) in enumerate(rows)]
    return dict(zip(("score", "sentence1", "sentence2"), zip(*spread, strict=True), strict=True))


def _labelled(triplets: Sequence[Triplet]) -> Columns:
    rows = [row for a, p, n in triplets for row in ((1, a, p), (0, a, n))][:ROWS]
    return dict(zip(("label", "sentence1", "sentence2"), zip(*rows, strict=True), strict=True))


def _probed(one: ProbedSet, part: SetPart, triplets: Sequence[Triplet]) -> Columns:
    """Sentences, or pairs of them, with the labels of the set in turn."""
    if one.limits is not None:
        return _scored(triplets)
    known = next((some.labels for some in (part, *one.parts) if some.labels), None)
    labels = list(islice(cycle(known or ("0", "1")), ROWS))
    first, second, _ = zip(*islice(cycle(triplets), ROWS), strict=True)
    if one.shape is Shape.CLASSIFICATION:
        return {"label": labels, "text": first}
    names = ("premise", "hypothesis") if one.shape is Shape.NLI else ("sentence1", "sentence2")
    return {"label": labels, **dict(zip(names, (first, second), strict=True))}


def _forum(name: str, triplets: Sequence[Triplet]) -> dict[str, Columns]:
    """A forum of CQADupStack: the anchors ask for their positives."""
    queries, documents = [f"q{at}" for at in range(len(triplets))], [f"d{at}" for at in range(len(triplets))]
    place = f"domain/CQADupStack/{name}"
    return {
        f"{place}.queries": {"id": queries, "text": [one[0] for one in triplets]},
        f"{place}.documents": {"id": documents, "text": [one[1] for one in triplets]},
        f"{place}.relevant": {"query": queries, "document": documents},
    }


def _table(columns: Columns) -> str:
    rows = zip(*columns.values(), strict=False)  # a cycle has no end
    return "\n".join("\t".join(map(str, row)) for row in [tuple(columns), *rows]) + "\n"
