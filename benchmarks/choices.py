"""Whether the winner of `choose` wins on rows that it never saw.

    python -m benchmarks.choices DATA [-o out/choices] [--sets QNLI.dev] [--rows 150] [--fresh 100]

DATA has qa/qa_pairs.en.tsv.gz. `choose` gets some pairs of each set and seven searches: three encoders, words, and
words beside each encoder. Then all of them search for other pairs, of which `choose` has seen neither question nor
answer. Every finished set is kept in OUT as a JSON file, so that a run that was killed resumes; OUT/table.md has the
table.
"""

import argparse
import csv
import json
from pathlib import Path

from benchmarks.systems import Bench, asked_of
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.retrieval import MAIN, search_task
from sentloom.evaluation.significance import compare_averages
from sentloom.systems.choose import asked_rows, choose, named_searches, with_weights

SETS = ("QNLI.dev", "OpenTriviaQA", "WikiQA")
MODELS = ("embedded", "bge-small", "e5-multilingual")


def run_set(bench: Bench, name: str) -> dict:
    """What `choose` says, and the scores of all searches on the fresh pairs."""
    place = bench.out / name
    place.mkdir(parents=True, exist_ok=True)
    train, fresh = bench.pairs(name)
    data = str(place / "train.csv")
    with Path(data).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("question", "answer"), *train])
    choice = choose([data], MODELS, print)
    asked, memory = asked_rows([data], print), open_memory()
    task = search_task("fresh", asked_of(fresh, [answer for _, answer in train]), name)
    scores = {}
    for search in named_searches(MODELS, asked, None):
        (own,) = with_weights(search, asked.tuning, memory).scores([task], memory)
        scores[search.name] = own[MAIN]
    chosen, advised = choice.standings[0].name, choice.advised.name
    best = max(scores, key=lambda label: scores[label].value)
    gaps = {label: compare_averages([scores[label]], [scores[best]]) for label in (chosen, advised)}
    result = {
        "asked": {standing.name: standing.score for standing in choice.standings},
        "stopped": [standing.name for standing in choice.standings if standing.stopped],
        "fresh": {label: score.value for label, score in scores.items()},
        "chosen": chosen,
        "advised": advised,
        "best": best,
        "gaps": {label: [gap.difference, gap.low, gap.high] for label, gap in gaps.items()},
        "queries": len(scores[best].items),
    }
    (bench.out / f"{name}.json").write_text(json.dumps(result, indent=1))
    return result


def table(results: dict[str, dict]) -> str:
    """One line per set."""
    heads = ["set", "highest in `choose`", "advised", "best on fresh rows"]
    heads += [f"{role}, from the best" for role in ("highest", "advised")]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|---|---:|---:|"]
    for name, result in results.items():
        cells = [result[role] for role in ("chosen", "advised", "best")]
        for role in ("chosen", "advised"):
            gap, low, high = result["gaps"][result[role]]
            cells.append(f"{gap:+.1f} ({low:+.1f} to {high:+.1f})")
        lines.append(f"| {name}, {result['queries']} fresh queries | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the sets that are not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/choices"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--fresh", type=int, default=100)
    given = parser.parse_args()
    bench, results = Bench(given.data, given.output, given.rows, given.fresh, 0), {}
    for name in given.sets.split(","):
        path = given.output / f"{name}.json"
        results[name] = json.loads(path.read_text()) if path.is_file() else run_set(bench, name)
        (given.output / "table.md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
