"""What is given to learn from: read, looked at, without repeated rows, and said in plain words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from sentloom.corpus.opening import open_data
from sentloom.data.columns import among, sampled_texts
from sentloom.data.dataset import Dataset
from sentloom.data.limits import FITTING, Allowance, listed
from sentloom.data.nli import ENTAILMENT, pairs_from_nli, triplets_from_nli
from sentloom.data.shapes import Shape, text_columns
from sentloom.errors import InputError
from sentloom.fitting.split import Keys, Sentences, distinct_keys, sentences
from sentloom.hygiene.cleaning import TWO_SIDED, CleanSettings, clean
from sentloom.hygiene.inspection import Inspection, inspect
from sentloom.hygiene.languages import (
    SAMPLED,
    UNDETERMINED,
    language_name,
    language_shares,
    main_language,
    recognised,
    shares_in_words,
)

LEAST_ROWS = 100  # distinct ones: half of them are held out
LEAST_TEXTS = 40  # distinct texts that rows are split by
FEWEST_TRIPLETS = 200  # of NLI: a tenth of them proves
SHOWN_LABELS = 5
NOUNS = {
    Shape.TEXTS: "sentences",
    Shape.PAIRS: "pairs",
    Shape.TRIPLETS: "triplets",
    Shape.SCORED_PAIRS: "scored pairs",
    Shape.NLI: "pairs labelled for inference",
    Shape.PARALLEL: "translated sentences",
    Shape.CLASSIFICATION: "labelled texts",
}


@dataclass(frozen=True)
class Material:
    """One input. `data` is tidied and without repeated rows; the inspection is of what was read."""

    name: str
    data: Dataset
    inspection: Inspection
    column_shares: Mapping[str, Mapping[str, float]]  # of each text column: languages and their shares of its texts

    @property
    def languages(self) -> dict[str, str | None]:
        """The language of each text column; None where it is not recognised, or several are mixed."""
        return {column: main_language(shares) for column, shares in self.column_shares.items()}

    @property
    def language(self) -> str | None:
        """Of the first text column."""
        return next(iter(self.languages.values()))

    @property
    def shares(self) -> dict[str, float]:
        """Languages and their shares of the texts of all columns, the largest first, the undetermined rest last."""
        known = [shares for shares in self.column_shares.values() if shares]
        codes = dict.fromkeys(code for shares in known for code in shares)
        found = {code: sum(shares.get(code, 0.0) for shares in known) / len(known) for code in codes}
        return dict(sorted(found.items(), key=lambda item: (item[0] == UNDETERMINED, -item[1])))

    @property
    def words(self) -> float:
        """The median length of the first text column."""
        return self.inspection.lengths[0].distribution.median


def look(
    names: Sequence[str | Path],
    shape: Shape | None = None,
    columns: Mapping[str, str | int] | None = None,
    allow: Allowance = FITTING,
) -> list[Material]:
    """Read every input and look through it. Pairs and translations with two equal sides are left out as well.

    Rows that cannot be used are left out too, up to what `allow` tolerates.

    NLI with few premises that have both an entailment and a contradiction is taken for its entailments, as pairs.
    """
    materials: list[Material] = []
    for name in names:
        read = open_data(name, shape=shape, columns=columns, allow=allow)
        inspection, (data, _) = inspect(read), clean(read, CleanSettings())
        if data.shape is Shape.NLI and ENTAILMENT in inspection.labels and _few_triplets(data):
            data = pairs_from_nli(data)
        _refuse_twice(str(name), data, materials)
        shares = {column: _shares(data, column) for column in text_columns(data.shape)}
        materials.append(Material(str(name), data, inspection, shares))
    return materials


def _few_triplets(data: Dataset) -> bool:
    try:
        return len(triplets_from_nli(data)) < FEWEST_TRIPLETS
    except InputError:  # none at all, as where each premise stands in one row
        return True


def _refuse_twice(name: str, data: Dataset, before: Sequence[Material]) -> None:
    """Rows that are held out twice would make a result look surer than it is."""
    if same := [one.name for one in before if one.data.sha256 == data.sha256]:
        raise InputError(name, f"the rows of {same[0]} once more", "different data", "name it once")


def _shares(data: Dataset, column: str) -> dict[str, float]:
    return language_shares(sampled_texts(data, column, SAMPLED)) if len(data) else {}


def too_little(material: Material) -> None:
    """Refuse an input that nothing can be learnt from, or nothing proven on."""
    hashed, noun, given = sentences(material.data), NOUNS[material.data.shape], material.inspection.rows
    rows, texts = _distinct_rows(hashed), len(np.unique(hashed.draws))
    if rows < LEAST_ROWS:
        found = f"{given:,} {noun}, {rows:,} of them different" if rows < given else f"{given:,} {noun}"
        wanted = (
            f"at least {LEAST_ROWS} different ones: some are held out to prove the result, the others are learnt from"
        )
        raise InputError(material.name, found, wanted, _more(rows, given))
    if texts < LEAST_TEXTS:
        found = f"{rows:,} {noun} with {texts:,} different texts on one side"
        wanted = f"at least {LEAST_TEXTS}, so that some of them can be held out whole"
        raise InputError(material.name, found, wanted, "add rows with other texts on that side")
    _refuse_uniform(material)


def _more(rows: int, given: int) -> str:
    repeated = "repeated rows and rows whose two sides are the same text do not count; " if rows < given / 2 else ""
    return f"{repeated}add more data: some thousands of rows are a good start"


def _distinct_rows(hashed: Sentences) -> int:
    """Rows whose sentences differ in more than case, spacing and punctuation."""
    sums = np.zeros(len(hashed.draws), np.uint64)
    np.add.at(sums, hashed.owners, hashed.keys)
    return len(np.unique(sums))


def _refuse_uniform(material: Material) -> None:
    """One class, one score, or no entailment tells nothing of which texts belong together."""
    labels, scores = material.inspection.labels, material.inspection.scores
    if material.data.shape is Shape.NLI and ENTAILMENT not in labels:
        found, wanted = f"the labels {', '.join(labels)}", f"some rows with the label {ENTAILMENT}"
    elif material.data.shape is Shape.CLASSIFICATION and len(labels) < 2:
        found, wanted = f"one label only, {', '.join(labels)}", "two labels or more"
    elif scores is not None and scores.least == scores.most:
        found, wanted = f"one score only, {scores.least:g}", "scores that differ"
    else:
        return
    raise InputError(material.name, found, wanted, "label more rows, or give the texts alone as a file of sentences")


def in_words(material: Material) -> list[str]:
    """What an input holds: one line that says it all, and one for each thing worth knowing."""
    found, data = material.inspection, material.data
    head = f"{material.name}: {found.rows:,} {NOUNS[data.shape]}{_columns(data)}"
    lines = [", ".join([head, _languages(material), _median(found), _repeated(found)])]
    if len(data) < found.rows and not _are_entailments(material):
        twins = " and those whose two sides are the same text" if data.shape in TWO_SIDED else ""
        lines.append(f"{len(data):,} rows are used: without repeated ones{twins}")
    return [*lines, *_notes(material)]


def _are_entailments(material: Material) -> bool:
    """Whether NLI was taken for its entailments; the other rows are told as skipped."""
    return bool(material.inspection.labels) and material.data.shape is Shape.PAIRS


def _columns(data: Dataset) -> str:
    """The names that the columns have in the source, where they tell anything."""
    return f" ({', '.join(data.used.values())})" if data.shape is not Shape.TEXTS and data.used else ""


def _languages(material: Material) -> str:
    """The language of the columns, as in "English and German"; of mixed ones their shares."""
    if any(recognised(shares) and main_language(shares) is None for shares in material.column_shares.values()):
        return f"mixed languages: {shares_in_words(material.shares)}"
    known = dict.fromkeys(code for code in material.languages.values() if code)
    return " and ".join(language_name(code) for code in known) or language_name(None)


def _median(found: Inspection) -> str:
    medians = dict.fromkeys(f"{one.distribution.median:.0f}" for one in found.lengths)
    return f"median {' and '.join(medians)} words"


def _repeated(found: Inspection) -> str:
    return (
        f"{_percent(found.duplicate_rows / found.rows)} repeated rows" if found.duplicate_rows else "no repeated rows"
    )


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def _notes(material: Material) -> Iterator[str]:
    found, near = material.inspection, material.inspection.near_duplicates
    if close := near.repeats - (found.duplicate_rows if near.whole else 0):
        of = "the rows" if near.whole else f"a sample of {near.sampled:,} rows"
        what = "nearly repeat another one" if near.whole else "repeat or nearly repeat another one"
        yield f"{_percent(close / near.sampled)} of {of} {what}"
    if found.labels:
        shown = ", ".join(f"{label} {count:,}" for label, count in list(found.labels.items())[:SHOWN_LABELS])
        more = len(found.labels) - SHOWN_LABELS
        yield f"labels: {shown}" + (f" and {more:,} more" if more > 0 else "")
        if _are_entailments(material):
            few = f"under {FEWEST_TRIPLETS} entailments have a contradiction of the same premise beside them"
            yield f"{few}: the entailments are taken as pairs"
    if found.scores:
        yield f"scores from {found.scores.least:g} to {found.scores.most:g}"
    if material.data.ignored:
        yield f"columns not used: {listed(material.data.ignored)}"
    yield from material.data.notes
    yield from left_out(material)
    yield from (f"skipped: {count:,} {what}" for what, count in material.data.skipped.items())
    yield from (f"{one.what}: {one.rows:,} rows, first at {one.example}" for one in found.findings if one.example)


def left_out(material: Material) -> list[str]:
    """How many rows cannot be used, why, and where the first of them are."""
    data = material.data
    if not data.left_out:
        return []
    whole = data.left_out + material.inspection.rows
    return [
        f"{data.left_out:,} of {whole:,} rows cannot be used and are left out: {'; '.join(map(str, data.irregular))}"
    ]


def leaks_between(materials: Sequence[Material], evals: Sequence[Dataset]) -> list[str]:
    """Which inputs have sentences in common, and which sentences to be scored on stand in an input."""
    keys = {one.name: distinct_keys([one.data]) for one in materials}
    lines = [
        f"{left} and {right} have {count:,} sentences in common ({_percent(count / len(keys[left]))} of {left})"
        for left, right in combinations(keys, 2)
        if (count := _common(keys[left], keys[right]))
    ]
    for data in evals:
        scored = distinct_keys([data])
        lines += [
            f"{count:,} of the {len(scored):,} sentences of {data.files[0]} stand in {name}"
            for name, own in keys.items()
            if (count := _common(scored, own))
        ]
    return lines


def _common(left: Keys, right: Keys) -> int:
    return int(among(left, right).sum())
