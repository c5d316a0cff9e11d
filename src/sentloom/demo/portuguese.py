"""Demo of cross-lingual training: the embedded encoder learns Portuguese from locally translated docstrings."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from sentloom.corpus.docstrings import DocstringCorpus
from sentloom.data.columns import evenly_spaced
from sentloom.data.dataset import Dataset
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.pipeline.builtin import find_recipe
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.results import run_plans
from sentloom.pipeline.runner import start_accelerator
from sentloom.report import search_tables, tables
from sentloom.search.nearest import top_k
from sentloom.views.translation import translate

WORDS = range(5, 15)  # words per sentence: short sentences translate faster
HELD_OUT = 400
EXAMPLES = 3
FOUND = "translation ranked first, both directions"


def run(
    folder: Path,
    corpus: DocstringCorpus,
    sentences: int,
    show: Callable[[RenderableType], None],
    changes: Sequence[str] = (),  # overrides of recipe values
    held_out: int = HELD_OUT,
) -> None:
    """Translate docstring sentences, train on most of them, and search the rest before and after."""
    chosen = choose(corpus.texts("train"), sentences + held_out, at_least=4 * held_out)
    show(f"Translating {len(chosen):,} English sentences into Portuguese ...")
    pairs = translate(chosen, into="pt", cache=folder / "views")
    apart = np.arange(len(pairs)) % (len(pairs) // held_out) == 0
    for name, rows in (("train", ~apart), ("test", apart)):
        write(pairs.select(rows), folder / f"{name}.tsv")
    train, test = (json.dumps(str(folder / f"{name}.tsv"), ensure_ascii=False) for name in ("train", "test"))
    placed = [f"portuguese.data={train}", f"evaluate.sets=[{test}]", *changes]
    plan = read_recipe(find_recipe("portuguese"), placed).resolve()
    output = folder / "run"
    show(f"Training an English encoder to map {(~apart).sum():,} translations to the vectors of their originals ...")
    row = run_plans([plan], [None], output, start_accelerator((), output), show)[0]
    table = tables.plain_table(f"{apart.sum():,} held-out sentences", "", FOUND, numbers=1)
    for label, scores in (("before", row.before), ("after", row.after)):
        table.add_row(label, *(f"{score:.1f}%" for score in scores.values()))
    show("")
    show(table)
    show_examples(pairs.select(apart), output / "model", show)
    show(f"\nTry it: sentloom search {folder}/test.tsv 'ler um arquivo' --column source --model {output}/model")


def choose(texts: Dataset, wanted: int, at_least: int) -> Dataset:
    """Choose sentences of 5 to 14 words, spread evenly over all packages."""
    fitting = [row for row, text in enumerate(texts.column("text").to_pylist()) if len(text.split()) in WORDS]
    if len(fitting) < at_least:
        problem = f"only {len(fitting):,} sentences have 5 to 14 words"
        raise InputError("embedded corpus", problem, f"at least {at_least:,}", "install more packages, such as pandas")
    keep = np.zeros(len(texts), dtype=bool)
    keep[np.array(fitting)[evenly_spaced(len(fitting), wanted)]] = True
    return texts.select(keep)


def show_examples(pairs: Dataset, model: Path, show: Callable[[RenderableType], None]) -> None:
    """Show the top English result for some Portuguese sentences, before and after training."""
    english, portuguese = (pairs.column(name).to_pylist() for name in ("source", "target"))
    asked = [int(row) for row in np.linspace(0, len(english) - 1, EXAMPLES + 2)[1:-1]]
    found: list[list[tuple[float, str, str]]] = [[] for _ in asked]
    for label, encoder in (("before", Encoder.load("embedded")), ("after", Encoder.load(model))):
        numbers, cosines = top_k(encoder.encode([portuguese[row] for row in asked]), encoder.encode(english), 1)
        for answers, row, (first,), (cosine,) in zip(found, asked, numbers, cosines, strict=True):
            mark = "right" if english[first] == english[row] else "wrong"
            answers.append((float(cosine), f"{label}, {mark}", english[first]))
    for row, answers in zip(asked, found, strict=True):
        show("")
        show(search_tables.answers(portuguese[row], answers))
