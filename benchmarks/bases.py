"""Which base? The encoders of the catalogue, untrained, on sets of search, intents and similarity in seven languages.

    pip install --no-deps home-assistant-intents==2026.10.27
    sentloom models get bge-small mpnet e5-multilingual
    python -m benchmarks.bases DATA [-o out/bases] [--rows 100] [--publish]

DATA has the layout that docs/evaluation.md describes. Each set is a sample of rows without a cluster in common. In a
set of pairs, each text searches the partners of all rows. Vectors and scores are cached in OUT, so that a run that was
killed resumes. With --publish, the scores go to the product, which gives advice with them, and to docs/models.md.
About 15 minutes of one quiet core.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

import sentloom.encoder.catalogue
from benchmarks.real_sets import SETS, divide, questions, quora, renamed, rows_of, tabled, triplets
from sentloom.data import read
from sentloom.data.hygiene.languages import language_name
from sentloom.encoder import Encoder
from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.places import is_here
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.results import suite_result
from sentloom.evaluation.suites import LoadedSuite
from sentloom.evaluation.user_tasks import Corpus, data_task

MEASURED = Path(sentloom.encoder.catalogue.__file__).with_name("measured.json")
PAGE = Path(__file__).parents[1] / "docs/models.md"
START, END = "<!-- bases: written by benchmarks/bases.py -->\n", "<!-- end of bases -->\n"
SHAPES = {"pairs": "pairs", "labels": "classification", "scores": "scored-pairs"}
ROUNDS, TIMED = 3, 64
KNOWN = 300  # rows, among which labelled texts look for their label


@dataclass(frozen=True)
class TestSet:
    """How to read a set, its kind, and its language."""

    read: Callable[[Path], object]  # of DATA
    kind: str  # pairs, labels or scores
    language: str = "en"
    times: int = 1  # as many rows as other sets


def similar(data, file):
    columns = {name: name for name in ("sentence1", "sentence2", "score")}
    return tabled("scores", renamed(rows_of(data / f"{file}.tsv"), **columns))


def entailed(data, language):
    """What follows from a sentence, as pairs."""
    table = triplets(data, language)
    return tabled("pairs", {name: table[name] for name in ("anchor", "positive")})


TESTS = {
    "OpenTriviaQA": TestSet(partial(questions, subset="OpenTriviaQA"), "pairs", times=2),
    "WikiQA": TestSet(partial(questions, subset="WikiQA"), "pairs", times=3),
    "SelQA": TestSet(partial(questions, subset="SelQA"), "pairs", times=3),
    "QNLI": TestSet(partial(questions, subset="QNLI.dev"), "pairs", times=3),
    "Quora": TestSet(quora, "pairs", times=3),
    "intents": TestSet(SETS["intents"].read, "labels", times=2),
    "STS-B": TestSet(partial(similar, file="sts/STSB.test"), "scores", times=2),
    **{
        f"STS-B {code}": TestSet(partial(similar, file=f"sts_multi/STSB_mt.{code}.test"), "scores", code)
        for code in ("de", "es", "fr", "pt", "zh")
    },
    "STS17 ar": TestSet(partial(similar, file="sts_multi/STS17.ar-ar"), "scores", "ar"),
    **{f"NLI {code}": TestSet(partial(entailed, language=code), "pairs", code) for code in ("de", "zh")},
}


def encoders():
    """Those of the catalogue that are on this machine, the default first: the others are compared with it."""
    return [name for name, entry in CATALOGUE.items() if entry.use == "encoder" and is_here(entry)]


def build_task(name, data, rows):
    """The task of a sample: pairs search, labelled texts look for their label among rows of other templates."""
    test, table = TESTS[name], TESTS[name].read(data)
    known, asked = divide(table, KNOWN, min(rows * test.times, len(table)))
    corpus = Corpus(known=(rows_in_memory(known),)) if test.kind == "labels" else Corpus()
    return data_task(None, name, name, rows_in_memory(asked), None, corpus)


def rows_in_memory(table):
    return read(pa.table(table.columns), shape=SHAPES[table.kind])


def scores(data, folder, rows):
    """By set: its language, its items, and by encoder the score and the difference from the default, with intervals."""
    tasks = {name: build_task(name, data, rows) for name in TESTS}
    names, memory = encoders(), open_memory(folder)
    memory.vectors.block = 64  # texts that a run that is killed loses
    scored = {name: {} for name in tasks}
    for model in names:
        encoder = Encoder.load(model)
        for name, task in tasks.items():
            scored[name][model] = [score_tasks(encoder, [task], memory)]
            print(f"{model}: {name} is scored", flush=True)
    measured = {}
    for name, task in tasks.items():
        (result,) = suite_result(LoadedSuite(name, (task,), {}, ()), scored[name]).sets
        cells = {model: result.cells[model][result.main] for model in names}
        measured[name] = {
            "language": TESTS[name].language,
            "score": result.main,
            "items": result.items,
            "scores": {model: rounded(cell.value, cell.low, cell.high) for model, cell in cells.items()},
            "differences": {
                model: rounded(cell.difference, cell.difference_low, cell.difference_high)
                for model, cell in cells.items()
                if cell.difference is not None
            },
        }
    return measured


def rounded(*values):
    return [value if value is None else round(value, 2) for value in values]


def speeds(data, folder):
    """By encoder, texts a second in batches (the best of some rounds), and the milliseconds of one query (the median).

    Seconds are those of one core: other work on the machine does not count.
    """
    path = folder / "speed.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    texts = TESTS["OpenTriviaQA"].read(data)["question"][:TIMED]
    for name in encoders():
        if name not in known:
            encoder = Encoder.load(name)
            rate = max(len(texts) / seconds(encoder, texts) for _ in range(ROUNDS))
            waits = [seconds(encoder, [text]) for text in texts[: ROUNDS * 8]]
            known[name] = [round(rate), round(1000 * statistics.median(waits), 1)]
    path.write_text(json.dumps(known), "utf-8")
    return {name: known[name] for name in encoders()}


def seconds(encoder, texts):
    start = time.process_time()
    encoder.encode(texts, role="query")
    return time.process_time() - start


# ---------------------------------------------------------------- what is published


def table(measured):
    """Scores with intervals, and under each the difference from the default; then sizes and speed."""
    first, *others = measured["speed"]
    yield f"| set | language | score | items | {first} | {' | '.join(others)} |"
    yield f"|---|---|---|---:|{'---:|' * (1 + len(others))}"
    for name, row in measured["sets"].items():
        value, low, high = row["scores"][first]
        cells = [f"{value:.1f} ({low:.1f} to {high:.1f})", *(compared(row, model) for model in others)]
        language = language_name(row["language"])
        yield f"| {name} | {language} | {row['score']} | {row['items']:,} | {' | '.join(cells)} |"
    for what, cells in properties(measured["speed"]).items():
        yield f"| {what} | | | | {' | '.join(cells)} |"


def compared(row, model):
    """A score and its difference from the default; bold if the interval of the difference excludes 0."""
    (value, *_), (difference, low, high) = row["scores"][model], row["differences"][model]
    shown = f"{difference:+.1f}, {low:+.1f} to {high:+.1f}"
    return f"{value:.1f} (**{shown}**)" if low > 0 or high < 0 else f"{value:.1f} ({shown})"


def properties(speed):
    return {
        "texts a second of one core": [f"{rate:,.0f}" for rate, _ in speed.values()],
        "one query, ms of one core": [f"{wait:.1f}" for _, wait in speed.values()],
        "on disk, MB": [f"{CATALOGUE[name].size / 1e6:,.0f}" for name in speed],
    }


def publish(measured):
    """Write what the product reads, and the table of the page."""
    MEASURED.write_text(json.dumps(measured, indent=1) + "\n", "utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(before + START + "\n" + "\n".join(table(measured)) + "\n\n" + END + after, "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/bases"))
    parser.add_argument("--rows", type=int, default=100, help="of each set, or two or three times as many")
    parser.add_argument("--publish", action="store_true")
    arguments = parser.parse_args()
    data, folder = arguments.data, arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    measured = {"sets": scores(data, folder, arguments.rows), "speed": speeds(data, folder)}
    print("\n".join(table(measured)))
    if arguments.publish:
        publish(measured)


if __name__ == "__main__":
    main()
