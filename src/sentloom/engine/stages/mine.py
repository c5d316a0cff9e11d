"""Search texts for training data: `mine` gives pairs hard negatives, `retrieve` finds what each sentence entails.

mine       an encoder and pairs in, triplets out
retrieve   an NLI cross-encoder and sentences in, pairs out: BM25 ranks the candidates, the cross-encoder judges
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
from pydantic import Field

from sentloom.data.columns import evenly_spaced
from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import COLUMNS, Shape, arrow_type
from sentloom.encoder import Encoder
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.tokens import Prompts
from sentloom.engine.artifacts import Artifact
from sentloom.engine.schema import Text
from sentloom.engine.stages.stage import LATER, ONCE, PREVIOUS, Context, EncoderKeys, Forecast, Inputs
from sentloom.engine.stages.timing import placeholder, time_per_item
from sentloom.engine.stages.views import StoredDataset
from sentloom.errors import InputError
from sentloom.methods import Options
from sentloom.progress import progress
from sentloom.search.cross_encoder import CrossEncoder, load_nli_judge
from sentloom.search.mining import MineSettings, mine
from sentloom.search.words import WordIndex

TIMED_PAIRS = 128
TIMED_SCORES = 32  # pairs that a teacher is timed on
SCORED = 2  # pairs that a teacher scores, for each positive and negative: it rejects some candidates
BLOCK = 256  # sentences that are searched for at a time
TIMED_SENTENCES = 16


class MineOptions(MineSettings, Options):
    """How hard the negatives may be, and where they are searched for."""

    MODELS = ("guide", "teacher")
    guide: Text | None = None  # a second encoder that candidates must be far from the anchor by
    teacher: Text | None = None  # a cross-encoder that must score candidates below the positive
    corpus: tuple[Text, ...] = ()  # files to search in; without any, the positives of the pairs
    rows: int | None = Field(None, ge=1)  # how many pairs get negatives, evenly spaced; None: all

    @property
    def how(self) -> MineSettings:
        """How hard the negatives may be."""
        return MineSettings(**self.model_dump(include={*MineSettings.model_fields}))


class Mine(EncoderKeys, StoredDataset):
    """Each pair gets its hardest negatives; pairs without any are left out, unless `keep_all` is set."""

    MODEL_KIND = "encoder"
    OPTIONS = MineOptions

    model: Text | None = None  # a folder, a hub name or `stage:NAME`; None: the encoder of the stage before
    options: MineOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        located = super().located(locate)
        options = located.options.model_copy(update={"corpus": tuple(map(locate, self.options.corpus))})
        return located.model_copy(update={"model": self.model and locate(self.model), "options": options})

    def models(self) -> tuple[str, ...]:
        """The encoder that searches."""
        return (self.model or PREVIOUS,)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Pairs alone."""
        return (Shape.PAIRS,)

    def fit(self, data: Dataset) -> Dataset:
        """The pairs that get negatives."""
        if data.shape is not Shape.PAIRS:
            problem = f"the shape of its data is {data.shape}"
            raise InputError(f"stage {self.name}", problem, "pairs", "give a file with anchors and positives")
        return sampled_rows(data, self.options.rows)

    def load(self, source: str, prompts: Prompts | None) -> Encoder:
        """The encoder that searches."""
        return shared_encoder(source, pooling=self.pooling, max_length=self.max_length, prompts=prompts)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of an encoder as it is loaded."""
        return self.load(model, prompts).fingerprint()

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Options, and the corpus by its content."""
        corpus = [open_data(name).sha256 for name in self.options.corpus]
        options = super().depends(inputs, context)
        return {**options, "corpus": corpus, "pooling": self.pooling, "max": self.max_length}

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Search for the negatives of every pair."""
        start = time.perf_counter()
        encoder = self.load(inputs.model.source, context.prompts)
        guide = shared_encoder(self.options.guide) if self.options.guide else None
        teacher = CrossEncoder.load(self.options.teacher) if self.options.teacher else None
        triplets, _ = mine(encoder, inputs.rows, self._corpus(), self.options.how, guide=guide, teacher=teacher)
        return self.store(triplets, place, start)

    def _corpus(self) -> list[str] | None:
        """Every distinct sentence of the corpus files."""
        files = [texts_of(open_data(name)) for name in self.options.corpus]
        return [text for file in files for text in file.column("text").to_pylist()] if files else None

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time the encoding of some pairs. For the stages after it, the next positives are each pair's negatives."""
        pairs, encoder = inputs.rows, self.load(inputs.model.source, context.prompts)
        texts = [text for name in COLUMNS[Shape.PAIRS] for text in pairs.column(name).slice(0, TIMED_PAIRS).to_pylist()]
        per_text, corpus = time_per_item(encoder.encode, texts), len(self._corpus() or ())
        if self.options.guide:
            per_text += time_per_item(shared_encoder(self.options.guide).encode, texts)
        seconds, before = 2 * len(pairs) * per_text, corpus * per_text
        if self.options.teacher:
            first = pairs.take(range(min(TIMED_SCORES, len(pairs))))
            both = list(zip(first["anchor"], first["positive"], strict=True))
            scored = SCORED * (1 + self.options.negatives) * len(pairs)
            seconds += scored * time_per_item(CrossEncoder.load(self.options.teacher).score, both)
        rows, leaked = len(pairs), inputs.leaked
        ahead = Forecast(self.name, self.method, rows, Shape.TRIPLETS, seconds, leaked=leaked, before=before)
        negatives = self.options.negatives
        return ahead, Artifact("dataset", "", "", {}, lambda part: _with_next_positives(pairs, negatives))


def sampled_rows(data: Dataset, rows: int | None) -> Dataset:
    """At most `rows` rows, evenly spaced; None: all."""
    if rows is None or rows >= len(data):
        return data
    return data.select(np.isin(np.arange(len(data)), evenly_spaced(len(data), rows)))


def _with_next_positives(pairs: Dataset, count: int) -> Dataset:
    """Triplets of the size that mining gives."""
    positives = pairs.column("positive").to_pylist()
    cycle = positives * (1 + -(-count // len(positives)))
    lists = [cycle[row + 1 : row + 1 + count] for row in range(len(positives))]
    negatives = pa.array(lists, arrow_type("negatives"))
    columns = {name: pairs.column(name) for name in ("anchor", "positive")}
    table = pa.table({**columns, "negatives": negatives, FILE: pairs.column(FILE), LINE: pairs.column(LINE)})
    return replace(pairs.derive(table, "placeholder triplets", Shape.TRIPLETS), used={}, skipped={})


class RetrieveOptions(Options):
    """How many candidates a sentence has, and how sure the judge must be."""

    candidates: int = Field(5, ge=1)
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.9  # of the probability of entailment


class Retrieve(StoredDataset):
    """Every sentence with those of its candidates that it entails."""

    OPTIONS = RetrieveOptions

    model: Text  # a cross-encoder for NLI: a folder or a hub name
    options: RetrieveOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        return super().located(locate).model_copy(update={"model": locate(self.model)})

    def models(self) -> tuple[str, ...]:
        """The judge."""
        return (self.model,)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The hash of the judge."""
        return load_nli_judge(model).identity

    def fit(self, data: Dataset) -> Dataset:
        """Every distinct sentence."""
        return texts_of(data)

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Search and judge."""
        start = time.perf_counter()
        judge, by = load_nli_judge(inputs.model.source), self.options
        texts = inputs.rows.column("text").to_pylist()
        entailments = list(entailed(texts, judge, by.candidates, by.threshold))
        if not entailments:
            problem = f"none of the candidates of {len(texts):,} sentences is entailed"
            raise InputError(f"stage {self.name}", problem, "some pairs", "lower the threshold, or give more text")
        return self.store(_pairs(inputs.rows, entailments), place, start)

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time some judgements. For the stages after it, every sentence is beside itself."""
        rows = inputs.rows
        few = rows.column("text").slice(0, TIMED_SENTENCES).to_pylist()
        per_pair = time_per_item(load_nli_judge(self.model).score, list(zip(few, few, strict=True)))
        seconds = per_pair * self.options.candidates * len(rows)
        pairs = placeholder(rows, Shape.PAIRS)
        ahead = Forecast(self.name, self.method, len(rows), Shape.PAIRS, seconds, leaked=inputs.leaked, note=ONCE)
        return ahead, Artifact("dataset", "", "", {}, lambda part: pairs)


def entailed(texts: Sequence[str], judge: CrossEncoder, count: int, threshold: float) -> Iterator[tuple[int, str]]:
    """Yield the row of each sentence and a candidate that it entails."""
    index = WordIndex(texts)
    with progress("retrieving", len(texts), "sentences") as advance:
        for start in range(0, len(texts), BLOCK):
            block = candidates(index, texts, range(start, min(start + BLOCK, len(texts))), count)
            scores = judge.score([(texts[row], texts[other]) for row, other in block])
            judged = zip(block, scores, strict=True)
            yield from ((row, texts[other]) for (row, other), score in judged if score >= threshold)
            advance(min(BLOCK, len(texts) - start))


def candidates(index: WordIndex, texts: Sequence[str], rows: range, count: int) -> list[tuple[int, int]]:
    """For each row the other rows that BM25 ranks first, if they share a word with it."""
    scores = index.scores([texts[row] for row in rows])
    scores[np.arange(len(rows)), list(rows)] = 0.0  # not the sentence itself
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return [(row, int(other)) for at, row in enumerate(rows) for other in best[at] if scores[at, other] > 0]


def _pairs(texts: Dataset, entailments: Sequence[tuple[int, str]]) -> Dataset:
    """Pairs with the origin of their first sentence."""
    rows, others = zip(*entailments, strict=True)
    first = texts.table.take(pa.array(rows))
    columns = {"anchor": first.column("text"), "positive": pa.array(others, pa.large_string())}
    table = pa.table({**columns, FILE: first.column(FILE), LINE: first.column(LINE)})
    how = hashlib.sha256(repr(entailments).encode()).hexdigest()
    return replace(texts.derive(table, f"retrieved pairs {how}", Shape.PAIRS), used={}, skipped={})
