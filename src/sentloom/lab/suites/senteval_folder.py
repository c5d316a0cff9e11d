"""Read SentEval's own data folder, as written by its download script, the way SentEval reads it.

Sentences are split at whitespace and joined by single spaces, and a blank line is the sentence ".". The rows have the
same columns as our own files, so that both have the same content hash.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError, MissingPart, Problem
from sentloom.evaluation.set_source import Rows, SetPart, SetSource, read_rows

FETCH = "run SentEval's download script again"
SIGNS = ("MR", "CR", "SUBJ", "MPQA", "SST/binary", "TREC", "MRPC", "SICK", "STS/STSBenchmark", "STS/STS12-en-test")
BINARY = {  # the file of class 1 first, as in SentEval
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}
TREC = {"train": "train_5500.label", "test": "TREC_10.label"}
SICK = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
STS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


def find(folder: Path) -> Path | None:
    """Find SentEval's `downstream` folder in this folder, in its `data`, or as the folder itself; else None."""
    for place in (folder / "downstream", folder / "data" / "downstream", folder):
        if any((place / sign).is_dir() for sign in SIGNS):
            return place
    return None


def rows_of(part: SetPart, origin: SetSource) -> Rows | None:
    """Read a part from SentEval's folder; None if the folder is not SentEval's or SentEval has no such part."""
    downstream = origin.folder and find(origin.folder)
    names = [name for name in part.files if name in READERS]
    return rows(downstream, names[0]) if downstream and names else None


def read_any(part: SetPart, origin: SetSource, shape: Shape, keep: Sequence[str] = ()) -> Rows:
    """Read a part from a data folder, SentEval's own folder, or the hub, without checking it."""
    try:
        return read_rows(part, origin, shape, keep)
    except MissingPart:
        if (read := rows_of(part, origin)) is None:
            raise
        return read


def rows(downstream: Path, name: str) -> Rows:
    """Read the rows of our own file of that name: `senteval/MR`, `sts/STS12` ... (the keys of READERS)."""
    return READERS[name](downstream)


def binary_rows(downstream: Path, name: str) -> Rows:
    """Read MR, CR, SUBJ or MPQA: label and text, class 1 first."""
    sides = [_text(downstream / name / file, "latin-1").splitlines() for file in BINARY[name]]
    labels = ["1"] * len(sides[0]) + ["0"] * len(sides[1])
    return Rows({"label": labels, "text": [_sentence(line) for side in sides for line in side]}, str(downstream / name))


def sst_rows(downstream: Path, part: str) -> Rows:
    """Read SST-2, `train`, `dev` or `test`: label and text."""
    file = downstream / "SST" / "binary" / f"sentiment-{part}"
    texts, labels = _columns(file, _lines(file), (0, 1))
    return Rows({"label": [label.strip() for label in labels], "text": [_sentence(text) for text in texts]}, str(file))


def trec_rows(downstream: Path, part: str) -> Rows:
    """Read TREC, `train` or `test`: the coarse class as label, and text. A line is "NUM:dist How far ..."."""
    file = downstream / "TREC" / TREC[part]
    lines = _lines(file, "latin-1")
    labelled = [line.partition(":") for line in lines]
    fits = [bool(colon and label.isalpha() and len(rest.split()) > 1) for label, colon, rest in labelled]
    _refuse(file, lines, fits, "CLASS:kind and a question")
    texts = [_sentence(rest.partition(" ")[2]) for _, _, rest in labelled]
    return Rows({"label": [label for label, _, _ in labelled], "text": texts}, str(file))


def mrpc_rows(downstream: Path, part: str) -> Rows:
    """Read MRPC, `train` or `test`: label, sentence1 and sentence2."""
    file = downstream / "MRPC" / f"msr_paraphrase_{part}.txt"
    labels, *sides = _columns(file, _lines(file), (0, 3, 4), header=True)
    return Rows({"label": labels, **_pairs(sides)}, str(file))


def sts_rows(downstream: Path, name: str) -> Rows:
    """Read STS12 to STS16: sentence1, sentence2, score and subset. Pairs without a gold score are skipped."""
    folder = downstream / "STS" / f"{name}-en-test"
    parts = [_sts_subset(folder, subset) for subset in STS[name]]
    return Rows({column: [cell for part in parts for cell in part[column]] for column in parts[0]}, str(folder))


def _sts_subset(folder: Path, subset: str) -> dict[str, Sequence[object]]:
    gold_file, file = folder / f"STS.gs.{subset}.txt", folder / f"STS.input.{subset}.txt"
    gold, sides = _lines(gold_file), _columns(file, _lines(file), (0, 1))
    if len(gold) != len(sides[0]):
        problem = f"the file has {len(gold)} lines"
        raise InputError(str(gold_file), problem, f"{len(sides[0])}, as in {file.name}", FETCH)
    kept = [row for row, score in enumerate(gold) if score.strip()]
    return {
        **_pairs([[side[row] for row in kept] for side in sides]),
        "score": _scores(gold_file, gold, kept),
        "subset": [subset.removeprefix("surprise.")] * len(kept),
    }


def stsb_rows(downstream: Path, part: str) -> Rows:
    """Read STS-B, `train`, `dev` or `test`: sentence1, sentence2, score and subset (genre/file)."""
    file = downstream / "STS" / "STSBenchmark" / f"sts-{part}.csv"
    genres, files, gold, *sides = _columns(file, _lines(file), (0, 1, 4, 5, 6))
    subsets = [f"{genre}/{name}" for genre, name in zip(genres, files, strict=True)]
    return Rows({**_pairs(sides), "score": _scores(file, gold), "subset": subsets}, str(file))


def sick_rows(downstream: Path, part: str) -> Rows:
    """Read SICK-R, `train`, `dev` or `test`: sentence1, sentence2 and score (relatedness)."""
    file = downstream / "SICK" / SICK[part]
    *sides, gold = _columns(file, _lines(file), (1, 2, 3), header=True)
    return Rows({**_pairs(sides), "score": _scores(file, gold, first_line=2)}, str(file))


READERS: Mapping[str, Callable[[Path], Rows]] = {
    **{f"senteval/{name}": partial(binary_rows, name=name) for name in BINARY},
    **{f"senteval/SST2.{part}": partial(sst_rows, part=part) for part in ("train", "dev", "test")},
    **{f"senteval/TREC.{part}": partial(trec_rows, part=part) for part in TREC},
    **{f"senteval/MRPC.{part}": partial(mrpc_rows, part=part) for part in ("train", "test")},
    **{f"sts/{name}": partial(sts_rows, name=name) for name in STS},
    **{f"sts/STSB.{part}": partial(stsb_rows, part=part) for part in ("train", "dev", "test")},
    **{f"sts/SICKR.{part}": partial(sick_rows, part=part) for part in SICK},
}


def _text(file: Path, encoding: str) -> str:
    try:
        return file.read_text(encoding)
    except FileNotFoundError:
        raise MissingPart(file.name, f"there is no file {file}", "", FETCH) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(file), str(error), f"a text file in {encoding}", FETCH) from error


def _lines(file: Path, encoding: str = "utf-8") -> list[str]:
    """Split at newlines only, like a loop over the file; `splitlines` also splits at U+0085 and others."""
    return _text(file, encoding).removesuffix("\n").split("\n")


def _columns(file: Path, lines: Sequence[str], places: Sequence[int], header: bool = False) -> list[list[str]]:
    """Return some columns of tab-separated lines."""
    first = 1 if header else 0
    rows = [line.split("\t") for line in lines[first:]]
    fits = [len(row) > max(places) for row in rows]
    _refuse(file, lines[first:], fits, f"at least {max(places) + 1} cells, tab-separated", first + 1)
    return [[row[at] for row in rows] for at in places]


def _scores(file: Path, cells: Sequence[str], kept: Sequence[int] | None = None, first_line: int = 1) -> list[float]:
    """Parse the numbers in some of the cells, by default in all."""
    rows = range(len(cells)) if kept is None else kept
    fits = [True] * len(cells)
    scores = []
    for row in rows:
        try:
            scores.append(float(cells[row]))
            fits[row] = math.isfinite(scores[-1])
        except ValueError:
            fits[row] = False
    _refuse(file, cells, fits, "a number", first_line)
    return scores


def _refuse(file: Path, lines: Sequence[str], fits: Sequence[bool], expected: str, first_line: int = 1) -> None:
    """Raise one error for all malformed lines."""
    problems = [
        Problem(str(file), f"line {number}", f"{line[:40]!r} is malformed", expected)
        for number, (line, fit) in enumerate(zip(lines, fits, strict=True), first_line)
        if not fit
    ]
    if problems:
        raise DataError(problems, len(problems), FETCH)


def _pairs(sides: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    return {f"sentence{number}": [_sentence(text) for text in side] for number, side in enumerate(sides, 1)}


def _sentence(text: str) -> str:
    return " ".join(text.split()) or "."
