"""From public corpora to the papers' data: sentences of web pages, cleaned translations and broken ones."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.columns import Seen, hashes, mask, walk
from sentloom.data.corpus.prose import MIN_WORDS, is_prose, split_sentences
from sentloom.data.dataset import FILE, LINE, Dataset, scratch_table, shape_schema, take_rows
from sentloom.data.hygiene.cleaning import CleanReport, CleanSettings, clean
from sentloom.data.shapes import Shape
from sentloom.errors import InputError

# Of translations from English (the source) into Chinese (the target). Chinese characters count as words.
MOST_WORDS, LONGEST_WORD, RATIO, SCRIPTS = 100, 40, 4.0, ("Latin", "Han")
UNUSABLE = rf"</?[A-Za-z][^<>]*>|[^\s\p{{Han}}]{{{LONGEST_WORD + 1},}}"  # a tag, or a word that is too long
PUNCTUATION = (("[“”„«»]", '"'), ("[‘’‚´`]", "'"), ("–", "-"), (" *— *", " - "), ("…", "..."))

PAIRS, INTACT, SEED = 1000, 250, 1
WHOLE, BROKEN = 5.0, 0.0  # scores


def sentences(documents: Dataset) -> Dataset:
    """The distinct sentences of web pages, such as C4's (GenSE, section 3.1). How they are split is not stated.

    A line is a paragraph. Only whole sentences of prose are kept: of at least four words, with a capital, an end and
    few symbols.
    """
    table = scratch_table(shape_schema(Shape.TEXTS), _sentences(documents))
    return documents.derive(table, "sentences")


def _sentences(documents: Dataset) -> Iterator[pa.RecordBatch]:
    schema, seen = shape_schema(Shape.TEXTS), Seen()
    for _, batch in walk(documents):
        rows = [
            (sentence, file, line)
            for text, file, line in zip(*(batch.column(name).to_pylist() for name in ("text", FILE, LINE)), strict=True)
            for paragraph in text.splitlines()
            for sentence in split_sentences(" ".join(paragraph.split()))
            if sentence[:1].isupper() and sentence[-1] in ".?!" and is_prose(sentence, MIN_WORDS)
        ]
        split = pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        yield split.filter(pa.array(~seen.repeats(hashes(split.column("text")))))


def translations(pairs: Dataset) -> tuple[Dataset, int, CleanReport]:
    """Cleaned English-Chinese pairs, how many had a tag or too long a word, and what the other rules did.

    The cross-lingual paper follows Meng et al. (2020), whose rules we know at second hand only: plain punctuation, at
    most 100 words, none of more than 40 characters, no tags, no repeats. The ratio of lengths and the scripts are ours,
    in place of their scores of word alignment.
    """
    table = scratch_table(pairs.table.schema, _plain(pairs))
    plain = pairs.derive(table, "plain punctuation, no tags")
    cleaned, report = clean(plain, CleanSettings(max_words=MOST_WORDS, length_ratio=RATIO, scripts=SCRIPTS))
    return cleaned, len(pairs) - len(plain), report


def _plain(pairs: Dataset) -> Iterator[pa.RecordBatch]:
    for _, batch in walk(pairs):
        place = batch.schema.get_field_index("source")
        source = batch.column(place)
        for pattern, plain in PUNCTUATION:
            source = pc.replace_substring_regex(source, pattern, plain)
        unusable = [mask(pc.match_substring_regex(side, UNUSABLE)) for side in (source, batch.column("target"))]
        plain_batch = batch.set_column(place, batch.schema.field(place), source)
        yield plain_batch.filter(pa.array(~(unusable[0] | unusable[1])))


def broken_translations(pairs: Dataset) -> Dataset:
    """1,000 scored pairs as the cross-lingual paper plots them (Appendix A): 250 whole, 750 with another target.

    They are the first 1,000 rows; the other targets are drawn from the rest. Targets, which are Chinese, come first:
    the source encoder reads them.
    """
    swapped = PAIRS - INTACT
    if len(pairs) < PAIRS + swapped:
        expected = f"at least {PAIRS + swapped:,}: {PAIRS:,} pairs, and {swapped:,} others whose targets are taken"
        raise InputError(pairs.files[0], f"it has {len(pairs):,} rows", expected, "give a longer file")
    others = PAIRS + np.random.default_rng(SEED).choice(len(pairs) - PAIRS, swapped, replace=False)
    first, drawn = take_rows(pairs.table, np.arange(PAIRS)), take_rows(pairs.table, others)
    targets = [*first.column("target").to_pylist()[:INTACT], *drawn.column("target").to_pylist()]
    columns = {
        "sentence1": targets,
        "sentence2": first.column("source"),
        "score": [WHOLE] * INTACT + [BROKEN] * swapped,
        **{name: first.column(name) for name in (FILE, LINE)},
    }
    table = pa.table(columns, schema=shape_schema(Shape.SCORED_PAIRS))
    return pairs.derive(table, f"broken translations {SEED}", Shape.SCORED_PAIRS)
