"""The embedded encoder learns Portuguese, without hub and data: docstrings, translated here, teach it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from sentloom.data.dataset import Dataset
from sentloom.data.docstrings import harvest
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation import top_k
from sentloom.files import alone_in
from sentloom.recipe import find_recipe, read_recipe
from sentloom.report import tables
from sentloom.stages import run_plans, start_accelerator
from sentloom.views.translation import translate

WORDS = range(5, 15)  # of a sentence: the translator is made for sentences, and short ones are quick
HELD_OUT = 400
EXAMPLES = 3


def run(folder: Path, sentences: int, show: Callable[[RenderableType], None]) -> None:
    """Translate sentences of docstrings, train on most of them, and search among the others before and after."""
    show("Reading the docstrings of the installed packages ...")
    chosen = choose(harvest(show_progress=True).texts("train"), sentences + HELD_OUT)
    show(f"Translating {len(chosen):,} sentences into Portuguese ...")
    pairs = translate(chosen, into="pt", cache=folder / "views")
    apart = np.arange(len(pairs)) % (len(pairs) // HELD_OUT) == 0
    for name, rows in (("train", ~apart), ("test", apart)):
        write(pairs.select(rows), folder / f"{name}.tsv")
    train, test = (json.dumps(str(folder / f"{name}.tsv"), ensure_ascii=False) for name in ("train", "test"))
    changes = [f"portuguese.data={train}", f"evaluate.sets=[{test}]"]
    plan = read_recipe(find_recipe("portuguese"), changes).resolve()
    output = folder / "run"
    with alone_in(output):
        rows_of_table = run_plans([plan], [None], output, start_accelerator((), output), show)
    show("")
    show(tables.training_results("Does a sentence find its translation? (accuracy, both ways)", rows_of_table))
    show_examples(pairs.select(apart), output / "model", show)


def choose(texts: Dataset, wanted: int) -> Dataset:
    """Sentences of fitting length, evenly from all packages."""
    fitting = [row for row, text in enumerate(texts.column("text").to_pylist()) if len(text.split()) in WORDS]
    if len(fitting) < 4 * HELD_OUT:
        found, wanted_text = f"{len(fitting):,} sentences of 5 to 14 words", f"at least {4 * HELD_OUT:,}"
        raise InputError("embedded corpus", found, wanted_text, "install more packages, such as pandas")
    keep = np.zeros(len(texts), dtype=bool)
    keep[np.array(fitting)[np.linspace(0, len(fitting) - 1, min(wanted, len(fitting))).astype(int)]] = True
    return texts.select(keep)


def show_examples(pairs: Dataset, model: Path, show: Callable[[RenderableType], None]) -> None:
    """What a Portuguese sentence finds among the English ones, before and after."""
    english, portuguese = (pairs.column(name).to_pylist() for name in ("source", "target"))
    asked = [int(row) for row in np.linspace(0, len(english) - 1, EXAMPLES + 2)[1:-1]]
    for label, encoder in (("before", Encoder.load("embedded")), ("after", Encoder.load(model))):
        numbers, cosines = top_k(encoder.encode([portuguese[row] for row in asked]), encoder.encode(english), 1)
        for row, found, values in zip(asked, numbers, cosines, strict=True):
            mark = "right" if found[0] == row else "wrong"
            show("")
            show(tables.answers(portuguese[row], [(float(values[0]), f"{label}, {mark}", english[found[0]])]))
