"""Training sets: the form of each shape, one set per shape, and the corpus to search in."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sentloom.data import read
from sentloom.data.batches import make_batches
from sentloom.data.readers import join
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.errors import InputError
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.shapes.graded import is_graded
from sentloom.fitting.shapes.scored_pairs import high_pairs
from sentloom.fitting.split import Split
from sentloom.fitting.training_sets import (
    FEWEST_ROWS,
    LanguageFile,
    LanguagePart,
    TrainingSet,
    cut_line,
    training_form,
    training_rows,
    write_held_out,
    write_search_corpus,
    write_training_sets,
)
from tests.fitting import small_base
from tests.small_data import build_dataset


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return Encoder.load(small_base.build_base(tmp_path_factory.mktemp("base")))


SCORED = [("a b", "a c", 0.0), ("d e", "d f", 3.9), ("g h", "g i", 4.0), ("j k", "j l", 5.0)]


def input_of(data, language="en"):
    return FitInput("faq.csv", data, None, {"anchor": {language: 1.0}})


def test_scores_in_the_top_fifth_of_the_scale_are_pairs_to_learn_from():
    pairs = high_pairs(build_dataset(Shape.SCORED_PAIRS, SCORED))
    assert pairs.shape is Shape.PAIRS
    assert pairs.take([0, 1]) == {"anchor": ["g h", "j k"], "positive": ["g i", "j l"]}


def test_labels_scores_and_pairs_are_learned_from_as_they_are_and_texts_once():
    labelled = build_dataset(Shape.CLASSIFICATION, [("one", "a"), ("two", "b"), ("one", "b")])
    pairs, scored = build_dataset(Shape.PAIRS, [("one", "eins")]), build_dataset(Shape.SCORED_PAIRS, SCORED)
    assert all(training_form(data) is data for data in (labelled, pairs, scored))
    assert training_form(build_dataset(Shape.TEXTS, [("one",), ("two",), ("one",)]))["text"] == ["one", "two"]


def test_relevant_documents_of_queries_are_pairs_to_learn_from():
    rows = [("one", "eins", 2.0), ("one", "zwei", 0.0), ("two", "zwei", 1.0)]
    graded = replace(build_dataset(Shape.SCORED_PAIRS, rows), used={"sentence1": "query", "score": "relevance"})
    pairs = training_form(graded)
    assert (pairs.shape, pairs["anchor"], pairs["positive"]) == (Shape.PAIRS, ["one", "two"], ["eins", "zwei"])


def test_graded_rows_are_still_graded_when_they_are_read_again(tmp_path):
    """Two fits are compared on stored test rows: by the same task as in the fit, among documents."""
    (tmp_path / "graded.csv").write_text("query,document,relevance\none,eins,2\none,ein,1\ntwo,eins,0\n")
    rows = read(tmp_path / "graded.csv")
    write_held_out(1, Split(rows, rows, rows, rows), tmp_path)
    again = read(tmp_path / "1-scored-pairs-test.parquet", shape=Shape.SCORED_PAIRS)
    assert is_graded(again)
    assert (again["sentence2"], again["score"]) == (rows["sentence2"], rows["score"])
    write_search_corpus([input_of(rows)], [], tmp_path / "corpus.parquet")
    assert pq.read_table(tmp_path / "corpus.parquet").column("text").to_pylist() == ["eins", "ein"]


def test_too_few_rows_are_refused():
    rows = build_dataset(Shape.PAIRS, [(f"a {n}", f"b {n}") for n in range(FEWEST_ROWS - 1)])
    with pytest.raises(InputError, match="9 training rows"):
        training_rows(input_of(rows), Split(rows, rows, rows, rows))


def test_inputs_of_one_shape_are_one_training_set(base, tmp_path):
    english, german = (
        build_dataset(Shape.PAIRS, [(f"{name} {n}", f"answer {n}") for n in range(count)])
        for name, count in (("a", 3), ("b", 4))
    )
    texts = build_dataset(Shape.TEXTS, [("raw",)])
    inputs = [input_of(english), input_of(texts), input_of(german, "de")]
    (pairs, raw), cuts = write_training_sets(inputs, [english, texts, german], [base], tmp_path)
    assert (pairs.shape, pairs.rows, pairs.length, pairs.language) == (Shape.PAIRS, 7, 16, None)  # two languages
    assert [(cut.length, cut.texts, cut.cut) for cut in cuts] == [(16, 6, 0), (16, 1, 0), (16, 8, 0)]
    assert (raw.shape, raw.rows, raw.language) == (Shape.TEXTS, 1, "en")
    assert [len(read(file)) for file in pairs.files] == [3, 4]


def test_each_language_has_a_file_and_a_batch_comes_from_one_of_them(base, tmp_path):
    codes = ["de"] * 250 + ["../en"] * 230
    rows = build_dataset(Shape.PAIRS, [(f"{code} {n}", f"answer {n}") for n, code in enumerate(codes)])
    parts = [
        LanguagePart(code, rows.select(np.array(codes) == code), codes.count(code)) for code in dict.fromkeys(codes)
    ]
    more = build_dataset(Shape.PAIRS, [(f"fr {n}", f"answer {n}") for n in range(200)])
    inputs = [input_of(rows, "de"), input_of(more, "fr")]
    ((training_set,), _) = write_training_sets(inputs, [rows, more], [base], tmp_path, {1: parts, 2: []})
    assert (training_set.rows, [len(read(file)) for file in training_set.files]) == (680, [480, 200])
    assert [(file.language, file.examples) for file in training_set.by_language] == [
        ("de", 250),
        ("../en", 230),
        ("fr", 200),
    ]
    assert {Path(file.file).parent for file in training_set.by_language} == {tmp_path}
    batches = make_batches(join([read(file.file) for file in training_set.by_language]), 16, 1, 1.0, 2)
    languages = [{text.split()[0] for text in batches.batch(step).first} for step in range(batches.per_epoch)]
    assert [len(language) for language in languages] == [1] * (250 // 16 + 230 // 16 + 200 // 16)
    assert set.union(*languages) == {"de", "../en", "fr"}


@pytest.mark.parametrize(
    ("shape", "languages", "rows"),
    [
        (Shape.PAIRS, ("de", "de"), 200),
        (Shape.PAIRS, ("de", ""), 200),
        (Shape.PAIRS, ("de", "en"), 199),
        (Shape.PARALLEL, ("de", "en"), 200),
    ],
)
def test_there_are_no_batches_by_language(shape, languages, rows):
    files = tuple(LanguageFile(language, rows, "a.parquet") for language in languages)
    assert TrainingSet(shape, 2 * rows, ("a.parquet",), language_files=files).by_language == ()


def test_the_length_covers_the_texts_and_a_row_costs_the_tokens_of_all_its_texts(base, tmp_path):
    tokens = len(base.tokenize(["bano"])[0]) - 2  # of a word
    short, long = " ".join(["bano"] * (24 // tokens)), " ".join(["bano"] * 40)
    tokens = len(base.tokenize([short])[0])
    rows = [(short, short, [short, short])] * 39 + [(short, short, [long])]
    triplets = build_dataset(Shape.TRIPLETS, rows)
    ((training_set,), (cut,)) = write_training_sets([input_of(triplets)], [triplets], [base], tmp_path)
    limit = base.tokens.max_length  # cutting the long text even shorter would save nothing
    assert (training_set.length, cut.length, cut.texts, cut.cut) == (limit, limit, 159, 1)
    assert training_set.negatives == 2
    assert training_set.tokens == pytest.approx(4 * (158 * tokens + limit) / 159)
    assert training_set.fitting == 4_000_000_000 // (64 * 32 * 2)  # two layers of width 32
    assert cut_line(cut) == f"training reads up to {limit} tokens of a text, and 0.6% of the texts are longer"


def test_the_length_has_room_for_the_prompts_of_every_base(base, tmp_path):
    asked = base.copy()
    asked.prompts = {"query": Prompt(" ".join(["bano"] * 4) + " ")}
    pairs = build_dataset(Shape.PAIRS, [("bano", "bano")] * 20)
    ((alone,), _) = write_training_sets([input_of(pairs)], [pairs], [base], tmp_path)
    ((both,), (cut,)) = write_training_sets([input_of(pairs)], [pairs], [base, asked], tmp_path)
    assert alone.length == 16
    assert both.length == len(asked.tokenize(["bano"], "query")[0]) > 16
    assert cut_line(cut) == f"training reads texts in full, up to {both.length} tokens"


def test_documents_have_passages_and_their_titles_make_pairs(base, tmp_path):
    text = "One is here. Two is there. Three is gone. Four is back. Five is left."  # 2 + 2 + 1 sentences
    titled = replace(
        build_dataset(Shape.PAIRS, [(f"title {n}", f"{n}. {text}") for n in range(9)]), used={"anchor": "Title"}
    )
    (pairs, raw), (cut,) = write_training_sets([input_of(titled)], [titled], [base], tmp_path)
    assert (pairs.shape, pairs.rows, pairs.passages) == (Shape.PAIRS, 9, 0)
    assert (raw.shape, raw.rows, raw.passages) == (Shape.TEXTS, 9, 18)
    assert read(raw.files[0])["text"][0] == f"0. {text}"
    assert cut.texts == 18  # titles and texts
    mostly = build_dataset(Shape.TEXTS, [(f"short {n}",) for n in range(9)] + [(text,)])
    ((few,), _) = write_training_sets([input_of(mostly)], [mostly], [base], tmp_path)
    assert few.passages == 0  # one document in ten


def test_the_search_corpus_has_the_answers_of_pairs_once(tmp_path):
    pairs = build_dataset(Shape.PAIRS, [("one", "eins"), ("uno", "eins"), ("two", "zwei")])
    texts = build_dataset(Shape.TEXTS, [("zwei",), ("drei",)])
    write_search_corpus([input_of(pairs), input_of(texts)], ["null", "eins"], tmp_path / "corpus.parquet")
    assert pq.read_table(tmp_path / "corpus.parquet").column("text").to_pylist() == ["null", "eins", "zwei", "drei"]


def test_pairs_of_a_search_log_are_weighted_and_measured_once(base, tmp_path):
    (tmp_path / "log.csv").write_text("query,clicked,count\none,eins,1\ntwo,zwei,7\n")
    log = read(tmp_path / "log.csv")
    (pairs,), cuts = write_training_sets([input_of(log)], [log], [base], tmp_path)
    assert pairs.rows == 4
    assert len(cuts) == 1
