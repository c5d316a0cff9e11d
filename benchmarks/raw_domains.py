"""Raw text alone: what written queries teach in five domains, asked afterwards with queries that people wrote.

    pip install --no-deps home-assistant-intents==2026.10.27 && sentloom models get smollm2 reranker
    python -m benchmarks.raw_domains DATA [-o out/raw-domains] [--sets selqa,quora,intents,trivia,medquad] [--seeds 3]
                                          [--rows 1000] [--texts 300] [--steps 30] [--writer smollm2]

Only the texts of a domain (`real_sets`) are given: the answers, one side of duplicate questions, or the commands. The
writer writes two queries for each of some texts, once for all seeds; what the filters keep is learned from. SimCSE and
TSDAE learn from all texts for as many steps. Test rows are scored with plain numpy (`plain_scores`): human questions
search all answers, duplicate questions search each other, commands search commands of their intent. Intervals are
paired and over clusters. In `fit` a teacher teaches only if it ranks validation queries better than the base; here it
always does, and the table shows what comes of it. What a perfect writer could teach is measured with the queries that
people wrote for as many texts ("people's queries"); of commands, with another one of the same intent.

In the first domain the same model also writes through the protocol of an endpoint (`writer_server`), greedily: the rows
have to be equal. A scored run is kept in OUT, so that a run that was killed resumes, as does the writing itself;
OUT/table.md has the table, OUT/endpoint.json the rows. Planned for 90 minutes of two quiet cores.
"""

import argparse
import json
import random
from pathlib import Path

from benchmarks.ablations import PRECISIONS, Ablation, learn, run_all, same_label, write
from benchmarks.real_sets import SETS
from benchmarks.writer_server import served
from sentloom import SentloomError
from sentloom.encoder.locate import embedded_folder
from sentloom.engine.building import stage
from sentloom.lab import synthesize
from sentloom.writing.ledger import Ledger
from sentloom.writing.models import open_model

DOMAINS = "selqa,quora,intents,trivia,medquad"
TESTED = 300  # test rows of each domain, at most
CANDIDATES = 2  # queries of each text
NEGATIVES = 4  # candidates that the teacher scores, of each query


def texts_of(train, test):
    """What is given of a domain: all answers, or the training texts of labelled ones; never a test query."""
    tables = [train] if train.kind == "labels" else [train, test]
    column = "text" if train.kind == "labels" else list(train.columns)[1]
    return list(dict.fromkeys(text for one in tables for text in one[column]))


def asked_by_people(train, rows):
    """Queries of people and what they should find, from `rows` rows."""
    if train.kind == "labels":
        return random.Random(0).sample(same_label(train["text"], train["label"]), rows)
    queries, texts = (train[name] for name in list(train.columns)[:2])
    return list(zip(queries, texts, strict=True))[:rows]


def variants(files, steps, writer, rows):
    """What learns from a file of texts, or of queries that people wrote; the reference is the base."""
    texts = files["texts"]
    given = {"kinds": ["query"], "candidates": CANDIDATES, "shuffle": True, "rows": rows}
    written = stage("synthesize", name="written", model=writer, data=texts, **given)
    queries = (written, learn(files, steps, data="stage:written", learning_rate=5e-5, directions="both"))
    searched = {"corpus": [texts], "negatives": NEGATIVES, "margin": -1.0}
    mine = stage("mine", name="candidates", model="embedded", data="stage:written", **searched)
    taught = learn(files, steps, "distill", "stage:candidates", teacher="reranker", negatives=NEGATIVES)
    merge = stage("merge", name="merge", models=["stage:learn", "base"], weights=[0.5, 0.5])
    return {
        "base": (),
        "SimCSE": (learn(files, steps, "simcse", "texts", learning_rate=1e-5),),
        "TSDAE": (learn(files, steps, "tsdae", "texts"),),
        "queries": queries,
        "queries with a teacher": (written, mine, taught),
        "queries, merged with the base": (*queries, merge),
        "queries with a teacher, merged with the base": (written, mine, taught, merge),
        "people's queries": (learn(files, steps, data="people", learning_rate=5e-5, directions="both"),),
    }


class Domain(Ablation):
    """One domain: its texts, what learns from them, and the hidden queries."""

    def __init__(self, name, arguments):
        self.name, self.folder = name, arguments.output / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.train, self.test = SETS[name].split(arguments.data, arguments.rows, min(TESTED, arguments.rows))
        self.texts, people = self.folder / "texts.csv", self.folder / "people.csv"
        write(self.texts, ("text",), [(text,) for text in texts_of(self.train, self.test)])
        write(people, ("anchor", "positive"), asked_by_people(self.train, arguments.texts))
        files = {"texts": str(self.texts), "people": str(people)}
        self.variants = variants(files, arguments.steps, arguments.writer, arguments.texts)
        self.seeds, self.precision = range(1, arguments.seeds + 1), arguments.precision

    def run(self, variant, seed):
        """Train and score one variant; what cannot be trained, as nothing was kept, leaves the base."""
        try:
            super().run(variant, seed)
        except SentloomError as error:
            print(f"{self.name}, {variant}: {error.problem}", flush=True)
            self.score(variant, seed, embedded_folder(), 0.0)


def written_rows(folder):
    return [text for table in Ledger.open(folder).tables() for text in table["text"].to_pylist()]


def compare_endpoint(domain, writer, rows, output):
    """How many texts are equal if the same model writes through the protocol of an endpoint."""
    path = output / "endpoint.json"
    if not path.exists():
        how = {
            "kind": "query",
            "sampling": {"greedy": True},
            "execution": {"rows": rows, "encoder": "none", "precision": "fp32"},
        }
        local, remote = domain.folder / "local", domain.folder / "remote"
        synthesize(domain.texts, local, writer=writer, **how)
        prompts = Ledger.open(local).plan.prompts["query"]
        with served(open_model(writer).eval(), "query", prompts) as address:
            synthesize(domain.texts, remote, writer=address, writer_model="local", **how)
        pairs = list(zip(written_rows(local), written_rows(remote), strict=True))
        equal = sum(one == other for one, other in pairs)
        path.write_text(json.dumps({"set": domain.name, "rows": len(pairs), "equal": equal}), "utf-8")
    found = json.loads(path.read_text("utf-8"))
    print(f"{found['set']}: {found['equal']} of {found['rows']} texts are equal through an endpoint", flush=True)


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/raw-domains"))
    parser.add_argument("--sets", default=DOMAINS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rows", type=int, default=1000, help="rows of each domain besides the test rows")
    parser.add_argument("--texts", type=int, default=300, help="texts that the writer writes for")
    parser.add_argument("--endpoint-texts", type=int, default=40, help="texts that are also written by an endpoint")
    parser.add_argument("--writer", default="smollm2")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of training")
    arguments = parser.parse_args(given)
    arguments.output = arguments.output.absolute()
    domains = [Domain(name, arguments) for name in arguments.sets.split(",")]
    compare_endpoint(domains[0], arguments.writer, arguments.endpoint_texts, arguments.output)
    run_all(domains, arguments.output)


if __name__ == "__main__":
    main()
