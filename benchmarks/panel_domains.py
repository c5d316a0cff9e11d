"""The labelled domains of `panel_correlation`: text to learn from, text for the panel, and labels that decide."""

import random
from dataclasses import dataclass
from functools import partial

from benchmarks import real_sets
from sentloom import read
from sentloom.evaluation.bench import distinct
from sentloom.evaluation.pairs import correlation_task, detection_task, ranking_task
from sentloom.evaluation.retrieval import search_set, search_task
from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.task import Task

HELD_OUT, LABELLED, QUESTIONS = 150, 400, 80  # sentences of the panel; rows, or questions, with labels
TRAINING_TEXTS = 3000


@dataclass(frozen=True)
class Domain:
    """Sentences to learn from, pairs to learn from, sentences for the panel, and a labelled task: all of them apart."""

    name: str
    texts: list
    pairs: list
    held_out: list
    true: Task


def domain(name, true, held_out, texts, pairs):
    """Put a domain together: nothing that is scored on is learned from."""
    draw = random.Random(name)
    scored = set(distinct(true.texts))
    panel = [text for text in dict.fromkeys(held_out) if text not in scored]
    panel = draw.sample(panel, min(HELD_OUT, len(panel)))
    seen = scored | set(panel)
    own = [text for text in dict.fromkeys(texts) if text not in seen]
    own_pairs = [pair for pair in dict.fromkeys(pairs) if not seen & set(pair)]
    own, own_pairs = draw.sample(own, min(TRAINING_TEXTS, len(own))), draw.sample(own_pairs, len(own_pairs))
    return Domain(name, own, own_pairs, panel, true)


def some(name, number, rows):
    """A few rows of a table, the same in every run."""
    return sorted(random.Random(name).sample(range(rows), min(number, rows)))


def columns_of(data, *names):
    return [data.column(name).to_pylist() for name in names]


def sides(data):
    """All sentences of a data set."""
    return [text for _, _, text in data.sentences()]


def like(data, least):
    """The pairs that people call alike."""
    return [
        (a, b)
        for a, b, score in zip(*columns_of(data, "sentence1", "sentence2", "score"), strict=True)
        if score >= least
    ]


def stsb(files, name):
    train, dev, test = (read(str(files).format(part)) for part in ("train", "dev", "test"))
    true = correlation_task(name, Rows(test.take(some(name, LABELLED, len(test))), name))
    return domain(name, true, sides(dev), sides(train), like(train, 4))


def quora(data):
    name, own, test = "Quora duplicates", read(data / "glue/QQP.dev10k.tsv"), read(data / "glue/QQP.test10k.tsv")
    true = detection_task(name, Rows(test.take(some(name, LABELLED, len(test))), name))
    return domain(name, true, sides(own), sides(own), like(own, 1))


def captions(data):
    name, own = "captions", read(data / "pairs/captions.en.tsv.gz")
    rows = some(name, len(own), len(own))
    random.Random(name).shuffle(rows)
    labelled, panel, rest = rows[:LABELLED], rows[LABELLED:][:HELD_OUT], rows[LABELLED + HELD_OUT :][:4000]
    true = finding_task(name, own.take(labelled))
    kept = own.take(rest)
    pairs = list(zip(kept["anchor"], kept["positive"], strict=True))
    return domain(name, true, own.take(panel)["anchor"], kept["anchor"], pairs)


def wikiqa(data):
    name = "WikiQA"
    train, dev, test = (read(data / f"qa/WikiQA.{part}.tsv", keep=("qid",)) for part in ("train", "dev", "test"))
    questions = list(dict.fromkeys(test.column("qid").to_pylist()))
    chosen = {questions[place] for place in some(name, QUESTIONS, len(questions))}
    rows = [row for row, question in enumerate(test.column("qid").to_pylist()) if question in chosen]
    columns = test.take(rows)
    true = ranking_task(name, Rows(columns, name), columns["qid"])
    texts, pairs = (list(filter(short, rows)) for rows in (sides(train), like(train, 1)))
    return domain(name, true, list(filter(short, sides(dev))), texts, pairs)


def finding_task(name, columns):
    """Anchors find their positives among all of them."""
    return search_task(name, search_set(Rows(columns, name)), name)


def questions(subset, name, data):
    """Questions that look for their answers; the sentences are questions and answers."""
    train, test = real_sets.divide(real_sets.questions(data, subset), 4000, LABELLED)
    true = finding_task(name, {"anchor": test["question"], "positive": test["answer"]})
    pairs = list(zip(train["question"], train["answer"], strict=True))
    learned, panel = pairs[: len(pairs) - HELD_OUT], pairs[len(pairs) - HELD_OUT :]
    held_out = [text for pair in panel for text in pair if len(text.split()) > 3]
    return domain(name, true, held_out, [text for pair in learned for text in pair], learned)


DOMAINS = {
    "stsb": lambda data: stsb(data / "sts/STSB.{}.tsv", "STS-B"),
    "quora": quora,
    "captions": captions,
    "german": lambda data: stsb(data / "sts_multi/STSB_mt.de.{}.tsv", "STS-B in German"),
    "wikiqa": wikiqa,
    "medquad": partial(questions, "MedQuAD", "MedQuAD"),
    "selqa": partial(questions, "SelQA", "SelQA"),
    "trivia": partial(questions, "OpenTriviaQA", "OpenTriviaQA"),
}
CHOSEN = "trivia,wikiqa,stsb,german,quora"  # the embedded encoder was trained on the last one


def short(texts):
    """Whether a text, or each of a pair, has 20 words or fewer: WikiQA's others would take half of all the time."""
    return all(len(text.split()) <= 20 for text in ((texts,) if isinstance(texts, str) else texts))
