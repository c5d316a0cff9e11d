"""Demo of `sentloom fit`: fit the embedded encoder to the docstrings of installed Python packages."""

from collections.abc import Callable
from pathlib import Path

from rich.console import RenderableType

from sentloom.api.fitting import Fit, fit
from sentloom.data.corpus.docstrings import DocstringCorpus
from sentloom.data.dataset import Dataset
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.report import data_tables
from sentloom.report.fit_tables import fit_summary
from sentloom.search.nearest import top_k

QUESTIONS = (
    "distance between two probability distributions",
    "find where a function crosses zero",
    "scipy.optimize.brentq",
    "scipy.signal.butter",
    "scipy.sparse.csgraph.shortest_path",
)
FOUND = 2  # results shown per question


def run(folder: Path, model: str, corpus: DocstringCorpus, budget: str, show: Callable[[RenderableType], None]) -> Fit:
    """Fit on the docstrings of some packages, evaluate on held-out ones, and search those before and after."""
    show(data_tables.corpus(corpus))
    apart = corpus.pairs("held-out")
    if not len(apart):
        raise InputError("demo", "no package is held out", "at least one to evaluate on", "name one with --held-out")
    packages = ", ".join(package.package for package in corpus.packages if package.split == "held-out")
    files = {"sentences": corpus.texts(), "pairs": corpus.pairs(), "held-out": apart}
    paths = {name: folder / f"{name}.parquet" for name in files}
    for name, data in files.items():
        write(data, paths[name])
    shown = f"sentloom fit {paths['sentences']} {paths['pairs']} --against {paths['held-out']}"
    show(f"\nThe pairs of {packages} are held out. Running: {shown} -o {folder / 'model'} --budget {budget}\n")
    done = fit(
        [paths["sentences"], paths["pairs"]],
        folder / "model",
        base=model,
        budget=budget,
        against=[str(paths["held-out"])],
        log=show,
        show_progress=True,
    )
    show("")
    show(fit_summary(done.result))
    if done.model:
        search(Encoder.load(model), Encoder.load(done.model), apart, show)
        show(f"\nmodel:  {done.model}    try it: sentloom search {done.model}")
    show(f"report: {done.report}")
    show(done.result.verdict_line)
    return done


def search(before: Encoder, after: Encoder, pairs: Dataset, show: Callable[[RenderableType], None]) -> None:
    """Search the held-out summaries for a few questions with both encoders and show the results."""
    names, summaries = pairs.column("anchor").to_pylist(), pairs.column("positive").to_pylist()
    results: list[list[tuple[float, str, str]]] = [[] for _ in QUESTIONS]
    for label, encoder in (("before", before), ("after", after)):
        documents = encoder.encode(summaries, role="document")
        numbers, cosines = top_k(encoder.encode(QUESTIONS, role="query"), documents, FOUND)
        for answers, rows, values in zip(results, numbers, cosines, strict=True):
            answers += [(float(v), f"{label}: {names[r]}", summaries[r]) for r, v in zip(rows, values, strict=True)]
    for question, answers in zip(QUESTIONS, results, strict=True):
        show("")
        show(data_tables.answers(question, answers))
