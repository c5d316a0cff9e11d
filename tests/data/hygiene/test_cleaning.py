"""Cleaning: each rule by hand, all of them together compared with plain Python, and the memory used."""

import unicodedata
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import read
from sentloom.data.dataset import scratch_table
from sentloom.data.hygiene.cleaning import CleanReport, CleanSettings, clean, tidy
from sentloom.data.shapes import Shape, text_columns
from sentloom.errors import InputError
from tests.small_data import build_dataset


def counts(report: CleanReport) -> dict[str, tuple[str, int, str]]:
    return {rule.rule: (rule.effect, rule.rows, rule.example) for rule in report.rules}


def texts(dataset) -> list[str]:
    return dataset.column("text").to_pylist()


def test_unicode_is_composed() -> None:
    dataset = build_dataset(Shape.TEXTS, [("cafe",), ("cafe\u0301",), ("café",), ("\u212b",)])
    cleaned, report = clean(dataset, CleanSettings())
    assert texts(cleaned) == ["cafe", "caf\u00e9", "\u00c5"]
    assert counts(report)["Unicode"] == ("changed", 2, "data.tsv, line 3")


def test_white_space_and_control_characters_become_single_spaces() -> None:
    dataset = build_dataset(
        Shape.TEXTS, [("as it is",), ("\ta  b\r\n",), ("a\u00a0\u2003b",), ("a\x07b\u2028c",), ("é\u3000",)]
    )
    cleaned, report = clean(dataset, CleanSettings())
    assert texts(cleaned) == ["as it is", "a b", "a b c", "é"]
    assert counts(report)["white space"] == ("changed", 4, "data.tsv, line 3")


def test_joiners_are_not_white_space() -> None:
    words = ["می\u200cخواهم", "👩\u200d🚀"]  # the joiner is part of the spelling
    assert tidy(pa.array(words, pa.large_string())).to_pylist() == words


def test_empty_sentences_are_always_dropped() -> None:
    dataset = build_dataset(Shape.TRIPLETS, [("a", "b", ["c", " "]), ("a", "b", ["c", "d"])])
    cleaned, report = clean(dataset, CleanSettings())
    assert cleaned.column("negatives").to_pylist() == [["c", "d"]]
    assert counts(report)["empty"] == ("dropped", 1, "data.tsv, line 2")


def test_length_limits_in_words() -> None:
    rows = [("one two three",), ("one",), ("one two three four",), ("一二三",), ("一",)]
    cleaned, report = clean(build_dataset(Shape.TEXTS, rows), CleanSettings(min_words=2, max_words=3))
    assert texts(cleaned) == ["one two three", "一二三"]
    rules = [(rule.rule, rule.why, rule.rows, rule.example) for rule in report.rules if rule.rows]
    assert rules == [
        ("short", "a sentence has fewer than 2 words", 2, "data.tsv, line 3"),
        ("long", "a sentence has more than 3 words", 1, "data.tsv, line 4"),
    ]


def test_one_sentence_outside_the_limits_drops_its_row() -> None:
    dataset = build_dataset(
        Shape.TRIPLETS, [("a a", "a a", ["a a", "a"]), ("a a", "a", ["a a"]), ("a a", "a a", ["a a"])]
    )
    cleaned, _ = clean(dataset, CleanSettings(min_words=2))
    assert cleaned.column("_line").to_pylist() == [4]


@pytest.mark.parametrize(("shape", "kept"), [(Shape.PAIRS, 1), (Shape.PARALLEL, 1)])
def test_identical_sides_are_dropped_once_the_text_is_tidy(shape: Shape, kept: int) -> None:
    dataset = build_dataset(shape, [("a b", "a  b"), ("a", "b"), ("c", "c")])
    cleaned, report = clean(dataset, CleanSettings())
    assert len(cleaned) == kept
    assert counts(report)["identical sides"] == ("dropped", 2, "data.tsv, line 2")


def test_identical_sides_are_allowed_in_scored_pairs() -> None:
    cleaned, report = clean(build_dataset(Shape.SCORED_PAIRS, [("a", "a", 5.0)]), CleanSettings())
    assert len(cleaned) == 1
    assert "identical sides" not in counts(report)


def test_duplicates_are_whole_rows_and_the_first_is_kept() -> None:
    rows = [("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"), ("c", "x"), ("b", "x"), ("a", "x")]
    cleaned, report = clean(build_dataset(Shape.CLASSIFICATION, rows, chunk=2), CleanSettings())
    assert cleaned.column("_line").to_pylist() == [2, 3, 4, 6]
    assert counts(report)["duplicate"] == ("dropped", 3, "data.tsv, line 5")
    assert (report.rows_before, report.rows_after) == (7, 4)


def test_duplicates_of_scores_and_lists() -> None:
    scored = build_dataset(Shape.SCORED_PAIRS, [("a", "b", 1.0), ("a", "b", 1.5), ("a", "b", 1.0)])
    assert len(clean(scored, CleanSettings())[0]) == 2
    triplets = build_dataset(Shape.TRIPLETS, [("a", "b", ["c", "d"]), ("a", "b", ["c"]), ("a", "b", ["c", "d"])])
    assert len(clean(triplets, CleanSettings())[0]) == 2


def test_near_duplicates_are_dropped_on_request() -> None:
    long = "the quick brown fox jumps over the lazy dog near the old bridge by the river"
    dataset = build_dataset(Shape.TEXTS, [(long,), ("another sentence altogether",), (long + "s",), (long.upper(),)])
    assert len(clean(dataset, CleanSettings())[0]) == 4
    cleaned, report = clean(dataset, CleanSettings(near_duplicates=0.8))
    assert cleaned.column("_line").to_pylist() == [2, 3]
    assert counts(report)["near duplicate"] == ("dropped", 2, "data.tsv, line 4")


def test_a_row_counts_under_the_first_rule_that_it_violates() -> None:
    cleaned, report = clean(build_dataset(Shape.PAIRS, [("a", "a"), ("a", "a"), ("", "")]), CleanSettings())
    assert {rule: rows for rule, (_, rows, _) in counts(report).items() if rows} == {"empty": 1, "identical sides": 2}
    assert len(cleaned) == 0
    assert cleaned.table.schema.names == ["anchor", "positive", "_file", "_line"]


def test_report_as_table() -> None:
    _, report = clean(build_dataset(Shape.TEXTS, [("a",)] * 1501, chunk=100), CleanSettings())
    assert report.table()[2:] == [
        ("empty", "dropped", "0", "a sentence is empty", ""),
        ("duplicate", "dropped", "1,500", "repeats an earlier row", "data.tsv, line 3"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_words": -1},
        {"max_words": 0},
        {"min_words": 5, "max_words": 4},
        {"near_duplicates": 0.0},
        {"near_duplicates": 1.2},
    ],
)
def test_invalid_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(InputError):
        CleanSettings(**wrong)


def tidied(text: str) -> str:
    """Do what cleaning does to one sentence, character by character."""
    spaced = [
        " " if unicodedata.category(c) in ("Zs", "Zl", "Zp", "Cc") else c for c in unicodedata.normalize("NFC", text)
    ]
    return " ".join(word for word in "".join(spaced).split(" ") if word)


def words(text: str) -> int:
    """Count a character of a script without spaces as a word."""
    return len(text.replace("一", " 一 ").split())


SENTENCES = st.text(alphabet="ab\u0301\u00e9 \t\u00a0\u3000\u2028\x00\x1f\x85\u200d一", max_size=6)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), max_size=12), st.integers(1, 5))
def test_all_rules_equal_plain_python(rows: list[tuple[str, str]], chunk: int) -> None:
    expected: list[tuple[str, str]] = []
    for row in rows:
        left, right = (tidied(side) for side in row)
        if left and right and left != right and max(map(words, (left, right))) <= 2 and (left, right) not in expected:
            expected.append((left, right))
    dataset = build_dataset(Shape.PAIRS, rows, chunk=chunk)
    cleaned, report = clean(dataset, CleanSettings(max_words=2))
    columns = [cleaned.column(name).to_pylist() for name in text_columns(Shape.PAIRS)]
    assert list(zip(*columns, strict=True)) == expected
    assert sum(rule.rows for rule in report.rules if rule.effect == "dropped") == len(rows) - len(expected)
    again, _ = clean(cleaned, CleanSettings(max_words=2))
    assert again.table.equals(cleaned.table)


@given(st.lists(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cn"]))))
def test_tidy_over_all_of_the_first_plane(values: list[str]) -> None:
    composed = [unicodedata.normalize("NFC", value) for value in values]
    assert tidy(pa.array(composed, pa.large_string())).to_pylist() == [tidied(value) for value in values]


def test_memory_stays_far_below_the_text() -> None:
    start = build_dataset(Shape.TEXTS, [("x" * 2000,)] * 1000, chunk=1000)
    tables = (
        build_dataset(Shape.TEXTS, [(f"{'x' * 2000} {at} {n}",) for n in range(1000)], chunk=1000).table
        for at in range(40)
    )
    batches = (batch for table in tables for batch in table.to_batches())
    dataset = replace(start, table=scratch_table(start.table.schema, batches))  # 80 MB
    usual, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        cleaned, _ = clean(dataset, CleanSettings())
    finally:
        pa.set_memory_pool(usual)
    assert len(cleaned) == 40_000
    assert pool.max_memory() < 20_000_000


def test_parallel_sides_of_very_different_length_are_dropped() -> None:
    rows = [("a b c", "x"), ("a b", "x"), ("a", "x y z u"), ("one", "一二三"), ("one", "一二")]
    cleaned, report = clean(build_dataset(Shape.PARALLEL, rows), CleanSettings(length_ratio=2))
    assert cleaned.column("_line").to_pylist() == [3, 6]
    assert counts(report)["length ratio"] == ("dropped", 3, "data.tsv, line 2")


def test_sides_in_another_script_are_dropped() -> None:
    rows = [("dog", "狗"), ("dog", "dog 狗 cat"), ("犬", "狗"), ("1999", "2001"), ("dog", "ねこ")]
    cleaned, report = clean(build_dataset(Shape.PARALLEL, rows), CleanSettings(scripts=("Latin", "Han")))
    assert cleaned.column("_line").to_pylist() == [2, 5]
    rules = [(rule.why, rule.rows, rule.example) for rule in report.rules if rule.rule == "script"]
    assert rules == [
        ("source is mostly not in Latin", 1, "data.tsv, line 4"),
        ("target is mostly not in Han", 2, "data.tsv, line 3"),
    ]
    cleaned, _ = clean(build_dataset(Shape.PARALLEL, rows), CleanSettings(scripts=("Latin", "Kana+Han")))
    assert cleaned.column("_line").to_pylist() == [2, 5, 6]


def test_one_side_can_be_made_distinct() -> None:
    rows = [("a", "x"), ("a", "y"), ("b", "x"), ("c", "x")]
    cleaned, report = clean(build_dataset(Shape.PARALLEL, rows), CleanSettings(distinct="target"))
    assert cleaned.column("_line").to_pylist() == [2, 3]
    assert counts(report)["repeated side"] == ("dropped", 2, "data.tsv, line 4")


@pytest.mark.parametrize(
    ("settings", "shape", "message"),
    [
        ({"length_ratio": 0.5}, Shape.PARALLEL, "1 or more"),
        ({"length_ratio": 2}, Shape.TEXTS, "pairs or parallel"),
        ({"scripts": ("Latin",)}, Shape.PARALLEL, "one for each column: source, target"),
        ({"scripts": ("Latin", "Chinese")}, Shape.PARALLEL, "'Chinese'"),
        ({"distinct": "text"}, Shape.PARALLEL, "one of source, target"),
    ],
)
def test_rules_that_do_not_fit_the_shape_are_refused(settings, shape, message) -> None:
    with pytest.raises(InputError, match=message):
        clean(build_dataset(shape, [("a", "b")[: len(text_columns(shape))]]), CleanSettings(**settings))


def test_a_row_with_two_problems_is_dropped_once(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question,answer\n" + "who,we\n" * 2 + ",\nwhen,\n")
    _, report = clean(read(path, max_unusable=0.5), CleanSettings())
    (unusable,) = [rule for rule in report.rules if rule.rule == "unusable"]
    assert (report.rows_before, unusable.rows) == (4, 2)
    assert "column 'question'; empty" in unusable.why
