"""The data of `against_script`, `ablations` and `verdicts`: real sets of five kinds, divided by whole clusters.

All but one come from DATA, a folder of the layout that docs/evaluation.md describes. `intents` are the sentence
templates of Home Assistant's voice commands, from PyPI (CC BY 4.0), with the intent as label:

    pip install --no-deps home-assistant-intents==2026.10.27
"""

import csv
import gzip
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

INTENTS = "home-assistant-intents"
TEXTS_PER_TEMPLATE = 6
LARGEST = 0.05  # of the test rows that one cluster may be; larger clusters are for training

# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Table:
    """Rows as columns of strings, and the cluster of each row: rows that share a text or a template."""

    kind: str  # pairs, triplets, labels, scores or translations
    columns: dict[str, list[str]]
    clusters: np.ndarray

    def __len__(self):
        return len(self.clusters)

    def __getitem__(self, name):
        return self.columns[name]

    def take(self, rows):
        """Some rows, in this order."""
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return Table(self.kind, columns, self.clusters[rows])

    def write(self, path):
        """As CSV with a header, which both sentloom and pandas read."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(zip(*self.columns.values(), strict=True))


def tabled(kind, columns, group=None):
    """A table whose rows are clustered by equal texts in any column, and by a group of each row if there is one."""
    texts = [cells for name, cells in columns.items() if name not in ("label", "score")]
    keys = [*texts, *([[f"group {one}" for one in group]] if group else [])]
    return Table(kind, columns, connected([[key.casefold().strip() for key in some] for some in keys]))


def connected(keys):
    """The component of each row: rows with an equal key, in whatever column, are connected. (c, n) -> (n,)."""
    _, nodes = np.unique(np.concatenate([np.array(some, object) for some in keys]).astype(str), return_inverse=True)
    size = len(keys[0])
    rows = np.tile(np.arange(size), len(keys))
    total = size + int(nodes.max()) + 1
    graph = coo_array((np.ones(len(rows)), (rows, size + nodes)), shape=(total, total))
    return np.unique(connected_components(graph, directed=False)[1][:size], return_inverse=True)[1]


def divide(table, train, test, seed=0):
    """So many rows to train on and to test with, at most, without a cluster in common. Large clusters are trained on.

    The draw depends on nothing but the table and the seed.
    """
    sizes = np.bincount(table.clusters)
    order = np.random.default_rng(seed).permutation(len(sizes))
    small = order[sizes[order] <= max(1, LARGEST * test)]
    tested = small[np.cumsum(sizes[small]) <= test]
    trained = order[~np.isin(order, tested)]
    trained = trained[np.cumsum(sizes[trained]) <= train]
    return tuple(table.take(np.flatnonzero(np.isin(table.clusters, some))) for some in (trained, tested))


# ---------------------------------------------------------------- files of DATA


def rows_of(path):
    """The rows of a tab-separated file as dicts."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        names, *rows = (line.rstrip("\n").split("\t") for line in file)
    return [dict(zip(names, row, strict=True)) for row in rows]


def renamed(rows, **columns):
    """Columns by the names that they get: `anchor="question"`; a row that occurs twice counts once."""
    cells = dict.fromkeys(tuple(row[old] for old in columns.values()) for row in rows)
    return {new: list(some) for new, some in zip(columns, zip(*cells, strict=True), strict=True)}


def questions(data, subset):
    rows = [row for row in rows_of(data / "qa/qa_pairs.en.tsv.gz") if row["subset"] == subset]
    open_ones = [row for row in rows if row["answer"].lower() not in ("true", "false")]
    return tabled("pairs", renamed(open_ones, question="question", answer="answer"))


def quora(data):
    rows = rows_of(data / "pairs/quora_duplicates.en.tsv.gz")
    first, second, *_ = rows[0]
    return tabled("pairs", renamed(rows, anchor=first, positive=second))


def scored(data, file):
    rows = [row for part in ("train", "dev", "test") for row in rows_of(data / f"{file}.{part}.tsv")]
    return tabled("scores", renamed(rows, sentence1="sentence1", sentence2="sentence2", score="score"))


def triplets(data, language):
    rows = rows_of(data / f"nli/triplets.{language}.tsv")
    return tabled("triplets", renamed(rows, anchor="anchor", positive="positive", negative="negative"))


def tatoeba(data, language):
    """Translations of sentences of five words or more, one of each sentence; a sample, because there are 170,000."""
    rows = [row for row in rows_of(data / f"parallel/tatoeba.en-{language}.tsv.gz") if row["source"].count(" ") > 3]
    some = random.Random(0).sample(rows, min(len(rows), 20_000))
    table = tabled("translations", renamed(some, source="source", target="target"))
    return table.take(np.unique(table.clusters, return_index=True)[1])


# ---------------------------------------------------------------- Home Assistant's intents

FILLERS = {  # of slots for which the package has no values
    "area": ("kitchen", "living room", "bedroom", "bathroom", "garage", "office", "hallway", "garden"),
    "floor": ("upstairs", "downstairs", "basement", "attic"),
    "name": ("ceiling lamp", "front door", "coffee machine", "left curtain", "heater", "TV", "garage door", "radio"),
    "message": ("dinner is ready", "we leave in ten minutes", "the taxi is here"),
    "search_query": ("Abbey Road", "smooth jazz", "the Beatles", "the morning news", "Moonlight Sonata"),
    "zone": ("work", "school", "the gym"),
    "timer_name": ("pizza", "laundry", "egg", "homework"),
    "timer_command": ("open the blinds", "turn off the oven", "start the vacuum"),
    "shopping_list_item": ("milk", "apples", "washing powder", "bread"),
    "todo_list_item": ("call the plumber", "water the plants", "pay the rent"),
}
RULE, SLOT = re.compile(r"<(\w+)>"), re.compile(r"\{(\w+)(?::\w+)?\}")
INNERMOST = re.compile(r"\(([^()\[\]]*)\)|\[([^()\[\]]*)\]")


def expand(template, rules, slots, draw):
    """One sentence of a template: (a|b) is a or b, [a] is optional, (a;b) is in any order, <rule>, {slot}."""

    def chosen(match):
        inner = match[1] if match[1] is not None else match[2]
        if ";" in inner:
            return " ".join(draw.sample(inner.split(";"), inner.count(";") + 1))
        return draw.choice([*inner.split("|"), *([""] if match[1] is None else [])])

    while RULE.search(template):
        template = RULE.sub(lambda match: f"({rules[match[1]]})", template)
    template = SLOT.sub(lambda match: f"({draw.choice(slots[match[1]])})", template)
    while INNERMOST.search(template):
        template = INNERMOST.sub(chosen, template)
    return " ".join(template.split())


def slot_values(lists):
    """What a slot may be: the values of the package, some numbers of its range, or fillers."""
    found = dict(FILLERS)
    for name, one in lists.items():
        if "values" in one:
            found[name] = [value["in"] if isinstance(value, dict) else value for value in one["values"]]
        elif "range" in one:
            numbers = np.linspace(one["range"]["from"], one["range"]["to"], 8, dtype=int)[1:]
            found[name] = [str(number) for number in numbers]
    return found


def intents(_):
    """Short commands with the intent as label, several of each template; templates are clusters."""
    try:
        path = metadata.distribution(INTENTS).locate_file("home_assistant_intents/data/en.json")
    except metadata.PackageNotFoundError:
        raise SystemExit(f"pip install --no-deps {INTENTS}==2026.10.27, for the set `intents`") from None
    read, draw = json.loads(Path(str(path)).read_text("utf-8")), random.Random(0)
    slots, found = slot_values(read["lists"]), {}
    for intent, body in read["intents"].items():
        for template in (one for block in body["data"] for one in block["sentences"]):
            for _ in range(TEXTS_PER_TEMPLATE):
                found.setdefault(expand(template, read["expansion_rules"], slots, draw), (intent, template))
    labels, templates = zip(*found.values(), strict=True)
    return tabled("labels", {"text": list(found), "label": list(labels)}, templates)


# ---------------------------------------------------------------- the sets


@dataclass(frozen=True)
class RealSet:
    """How to read a set, how many rows are trained on and tested with, and whether the embedded base knew it.

    A plain sentence-transformers script trains for about two minutes of two cores on these rows and epochs.
    """

    read: Callable[[Path], Table]  # of DATA
    train: int
    epochs: int
    test: int
    known: bool = False  # Quora, captions and NLI are among the training data of all-MiniLM-L6-v2

    def split(self, data, train=None, test=None, seed=0):
        """Training rows and test rows."""
        return divide(self.read(data), train or self.train, test or self.test, seed)


SETS = {
    "medquad": RealSet(partial(questions, subset="MedQuAD"), 1000, 1, 500),
    "trivia": RealSet(partial(questions, subset="OpenTriviaQA"), 3000, 1, 600),
    "intents": RealSet(intents, 3000, 4, 900),
    "stsb-de": RealSet(partial(scored, file="sts_multi/STSB_mt.de"), 2000, 1, 1000),
    "tatoeba-de": RealSet(partial(tatoeba, language="de"), 2000, 2, 1000),
    "nli": RealSet(partial(triplets, language="en"), 2000, 1, 1000, known=True),
    "wikiqa": RealSet(partial(questions, subset="WikiQA"), 1000, 1, 300),
    "selqa": RealSet(partial(questions, subset="SelQA"), 2000, 1, 500),
    "qnli": RealSet(partial(questions, subset="QNLI.dev"), 2000, 1, 300),
    "stsb-zh": RealSet(partial(scored, file="sts_multi/STSB_mt.zh"), 2000, 1, 1000),
    "stsb": RealSet(partial(scored, file="sts/STSB"), 3000, 1, 1000),
    "nli-de": RealSet(partial(triplets, language="de"), 1000, 1, 500),
    "quora": RealSet(quora, 3000, 1, 1000, known=True),
}
