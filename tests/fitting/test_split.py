"""Splits: the promises as properties, by Python's own sets; sizes and odd data by hand."""

from collections import Counter
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.leaks import find_leaks
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.errors import InputError
from sentloom.fitting.clusters import find_clusters, rows_of
from sentloom.fitting.split import (
    DROPPED,
    TEST,
    TRAIN,
    VALIDATION,
    Sides,
    Split,
    fewest_clusters,
    largest_size,
    share_tested,
    sides,
    split_all,
)
from tests.fitting.test_request import request
from tests.paths import DATA
from tests.small_data import build_dataset

CHUNK = 150


def words(number: int, kind: str = "") -> str:
    """A text that resembles no other."""
    return sha256(f"{kind} {number}".encode()).hexdigest()[:24]


def sides_of(*datas: Dataset) -> list[Sides]:
    rows = [rows_of(str(number), data) for number, data in enumerate(datas)]
    return sides([row.sentences for row in rows], find_clusters(rows).numbers)


def split_of(*datas: Dataset) -> list[Split]:
    rows = [rows_of(str(number), data) for number, data in enumerate(datas)]
    return split_all(rows, find_clusters(rows))


@pytest.fixture(scope="module", autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SENTLOOM_SCRATCH", str(tmp_path_factory.mktemp("scratch")))
        yield


def drawn_rows(shape: Shape, size: int, vocabulary: int, seed: int) -> list[tuple]:
    """Rows of sentences that come back now and then, some of them in another case or with a full stop."""
    draw = np.random.default_rng(seed)

    def sentence() -> str:
        text = words(draw.integers(vocabulary))
        return (text, text.upper(), f"{text}.")[draw.integers(3)]

    tails: dict[Shape, tuple] = {Shape.SCORED_PAIRS: (1.0,), Shape.NLI: ("entailment",), Shape.CLASSIFICATION: ("a",)}
    if shape is Shape.TRIPLETS:
        return [(sentence(), sentence(), [sentence() for _ in range(draw.integers(1, 3))]) for _ in range(size)]
    texts = 1 if shape in (Shape.TEXTS, Shape.CLASSIFICATION) else 2
    return [(*(sentence() for _ in range(texts)), *tails.get(shape, ())) for _ in range(size)]


def contents(data: Dataset) -> Counter:
    cells = [data.column(name).to_pylist() for name in COLUMNS[data.shape]]
    return Counter(repr(row) for row in zip(*cells, strict=True))


def try_split(*datas: Dataset) -> list[Split]:
    try:
        return split_of(*datas)
    except InputError:
        assume(False)
        raise


drawn = st.tuples(st.sampled_from(Shape), st.integers(100, 400), st.integers(300, 3000), st.integers(0, 10**6))


def bare(data: Dataset, without: str = "") -> set[str]:
    return {text.lower().rstrip(".!") for _, name, text in data.sentences() if name != without}


def is_leaking(train: Dataset, held_out: Dataset) -> bool:
    """Whether any text of a training row is an anchor or a positive of a held-out one."""
    return not bare(train).isdisjoint(bare(held_out, "negatives"))


def is_shared(left: Dataset, right: Dataset) -> bool:
    """Whether rows of both have a text in common that is no negative."""
    return not bare(left, "negatives").isdisjoint(bare(right, "negatives"))


def pairs_in(data: Dataset) -> Counter[str]:
    """The rows without their negatives."""
    return Counter(str([cells for name, cells in row.items() if name not in ("negatives", "cluster")]) for row in data)


@settings(max_examples=25)
@given(drawn)
def test_sides_share_no_sentence_and_every_row_is_accounted_for(case) -> None:
    shape, *numbers = case
    data = build_dataset(shape, drawn_rows(shape, *numbers), chunk=CHUNK)
    (split,) = try_split(data)
    assert not is_leaking(split.train, split.validation)
    assert not is_leaking(split.train, split.test)
    assert not is_shared(split.validation, split.test)
    parts = (split.train, split.validation, split.test, split.dropped)
    assert sum(map(pairs_in, parts), Counter()) == pairs_in(data)
    held_out = [set(part["cluster"]) for part in (split.validation, split.test)]
    assert held_out[0].isdisjoint(held_out[1])


@settings(max_examples=15)
@given(drawn, drawn)
def test_what_one_input_holds_out_no_input_trains_or_validates_on(first, second) -> None:
    datas = [build_dataset(shape, drawn_rows(shape, *numbers), chunk=CHUNK) for shape, *numbers in (first, second)]
    splits = try_split(*datas)
    for mine in splits:
        for other in splits:
            assert not is_leaking(mine.train, other.validation)
            assert not is_leaking(mine.train, other.test)
            assert not is_shared(mine.validation, other.test)


@settings(max_examples=25)
@given(drawn, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random) -> None:
    shape, *numbers = case
    rows = drawn_rows(shape, *numbers)
    order = list(range(len(rows)))
    random.shuffle(order)
    (plain,) = sides_of(build_dataset(shape, rows, chunk=CHUNK))
    (mixed,) = sides_of(build_dataset(shape, [rows[at] for at in order], chunk=90))
    assert mixed.tolist() == plain[order].tolist()


@settings(max_examples=20)
@given(st.integers(100, 1500), st.integers(1, 1500), st.integers(0, 10**6))
def test_added_rows_move_no_training_row_among_the_held_out_ones(before: int, added: int, start: int) -> None:
    rows = [(words(start + number),) for number in range(before + added)]
    (old,) = sides_of(build_dataset(Shape.TEXTS, rows[:before], chunk=1500))
    (new,) = sides_of(build_dataset(Shape.TEXTS, rows, chunk=1500))
    assert set(new[:before][old == TRAIN]) == {TRAIN}
    assert TEST not in new[:before][old == VALIDATION]


def sizes(rows: int) -> list[int]:
    data = build_dataset(Shape.TEXTS, [(words(number),) for number in range(rows)], chunk=4096)
    return np.bincount(sides_of(data)[0], minlength=4).tolist()


def test_sizes_have_a_floor_a_share_and_a_cap() -> None:
    assert sizes(90) == [0, 43, 22, 25]
    assert sizes(25_000) == [0, 23_000, 1000, 1000]
    dropped, train, validation, test = sizes(5000)
    assert (dropped, train + validation + test) == (0, 5000)
    assert validation == pytest.approx(500, abs=4 * np.sqrt(5000 * 0.1 * 0.9))  # four deviations of a binomial
    assert test == pytest.approx(500, abs=4 * np.sqrt(5000 * 0.1 * 0.9))


@pytest.mark.parametrize(("rows", "share"), [(300, 0.2), (1000, 0.2), (1500, 0.15), (2000, 0.1), (5000, 0.1)])
def test_of_few_rows_more_are_tested(rows: int, share: float) -> None:
    assert share_tested(rows) == pytest.approx(share)
    _, _, validation, test = sizes(rows)
    assert test == pytest.approx(share * rows, abs=4 * np.sqrt(rows * share * (1 - share)))
    assert validation == pytest.approx(0.1 * rows, abs=4 * np.sqrt(rows * 0.09))


def test_with_a_long_budget_more_files_are_cross_validated() -> None:
    rows = rows_of("faq", build_dataset(Shape.PAIRS, [(words(n, "q"), words(n, "a")) for n in range(300)]))
    budgets = {"9m": 100, "10m": 500, "999steps": 100, "1000steps": 500}
    assert {budget: fewest_clusters(request(budget=budget)) for budget in budgets} == budgets
    (short,), (long,) = (split_all([rows], find_clusters([rows]), fewest) for fewest in (100, 500))
    assert len(short.validation) > 0 == len(long.validation)
    assert contents(short.test) == contents(long.test)


def test_the_floor_counts_clusters() -> None:
    """200 answers to ten questions each: a tenth of the rows are 20 answers, too few to show anything."""
    rows = [(words(number, "question"), words(number // 10, "answer")) for number in range(2000)]
    (split,) = split_of(build_dataset(Shape.PAIRS, rows, chunk=CHUNK))
    validation, test = (len(set(part["cluster"])) for part in (split.validation, split.test))
    assert test >= 25
    assert validation + test >= 50


def test_no_cluster_is_more_than_a_twentieth_of_a_held_out_side() -> None:
    """Answers to up to 40 questions each, in files of 1,200 rows: some of a large cluster are on no side."""
    for seed in range(5):
        draw = np.random.default_rng(seed)
        sizes = [*[40] * 15, *draw.integers(1, 4, 300)]
        rows = [
            (words(at * 50 + n, f"q{seed}"), words(at, f"a{seed}"))
            for at, size in enumerate(sizes)
            for n in range(size)
        ]
        (split,) = split_of(build_dataset(Shape.PAIRS, rows, chunk=3000))
        for part in (split.validation, split.test):
            counts = np.array(list(Counter(part["cluster"]).values()))
            assert counts.max() <= max(2, 0.05 * counts.sum())
            assert counts.sum() ** 2 / np.square(counts).sum() >= 20
        if len(split.dropped):
            assert "rows of large clusters are neither trained nor tested on" in split.notes[0]


@settings(max_examples=50)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_the_largest_size_is_the_largest_that_is_a_twentieth_of_what_is_left(sizes) -> None:
    largest, counts = largest_size(np.array(sizes)), np.array(sizes)
    fitting = [most for most in range(1, max(sizes) + 1) if 20 * most <= np.minimum(counts, most).sum()]
    assert largest == (max([*fitting, 2]) if len(sizes) >= 20 else max(sizes))


def test_few_clusters_have_25_for_the_test_and_no_validation_rows() -> None:
    for count in (60, 75, 99):
        rows = [(words(number, "q"), words(number, "a")) for number in range(count)]
        (split,) = split_of(build_dataset(Shape.PAIRS, rows))
        assert (len(split.test), len(split.validation), len(split.train)) == (25, 0, count - 25)
        assert len(set(split.clusters)) == len(set(split.draws)) == count - 25
    (split,) = split_of(build_dataset(Shape.PAIRS, [(words(n, "q"), words(n, "a")) for n in range(100)]))
    assert (len(split.test) + len(split.validation), len(split.train)) == (50, 50)


def test_a_small_file_beside_a_large_one_keeps_some_validation_rows() -> None:
    few, many = ([(words(n, f"q{count}"), words(n, f"a{count}")) for n in range(count)] for count in (60, 600))
    small, _ = split_of(build_dataset(Shape.PAIRS, few), build_dataset(Shape.PAIRS, many, chunk=600))
    assert (len(small.test), len(small.validation), len(small.train)) == (25, 15, 20)


def test_raw_text_alone_always_has_validation_rows() -> None:
    (split,) = split_of(build_dataset(Shape.TEXTS, [(words(n),) for n in range(60)]))
    assert (len(split.test), len(split.validation), len(split.train)) == (25, 15, 20)


def test_large_clusters_are_tested_no_more_often_than_small_ones() -> None:
    sizes = [1, 20] * 250
    rows = [(words(at * 50 + n, "q"), words(at, "a")) for at, size in enumerate(sizes) for n in range(size)]
    (side,) = sides_of(build_dataset(Shape.PAIRS, rows, chunk=3000))
    starts = np.cumsum([0, *sizes[:-1]])
    tested = [np.mean(side[starts[part::2]] == TEST) for part in (0, 1)]
    assert tested == pytest.approx([0.1, 0.1], abs=4 * np.sqrt(0.1 * 0.9 / 250))


def test_connected_rows_are_on_one_side() -> None:
    """Of three rows on three sides, the first shares its answer with the second and its question with the third."""
    rows = [(words(number, "question"), words(number, "answer")) for number in range(1000)]
    (free,) = sides_of(build_dataset(Shape.PAIRS, rows, chunk=CHUNK))
    trained, validated, tested = (int(np.flatnonzero(free == side)[0]) for side in (TRAIN, VALIDATION, TEST))
    rows[validated], rows[tested] = (rows[validated][0], rows[trained][1]), (rows[trained][0], rows[tested][1])
    (side,) = sides_of(build_dataset(Shape.PAIRS, rows, chunk=CHUNK))
    assert len(set(side[[trained, validated, tested]].tolist())) == 1
    assert DROPPED not in side


def test_few_answers_to_many_questions_are_split_by_answer() -> None:
    rows = [(words(number), words(number % 120, "answer")) for number in range(3000)]
    (split,) = split_of(build_dataset(Shape.PAIRS, rows, chunk=CHUNK))
    assert len(split.dropped) == 0
    answers = [set(part.column("positive").to_pylist()) for part in (split.train, split.validation, split.test)]
    assert sum(map(len, answers)) == 120  # each answer is on one side
    assert len(split.train) >= 1500


def test_nli_is_split_by_premise_whatever_its_hypotheses() -> None:
    rows = [(words(number // 3, "premise"), words(number), "neutral") for number in range(900)]
    (split,) = split_of(build_dataset(Shape.NLI, rows, chunk=CHUNK))
    premises = [set(part.column("premise").to_pylist()) for part in (split.train, split.validation, split.test)]
    assert sum(map(len, premises)) == 300
    assert len(split.dropped) == 0


def test_where_sharing_would_drop_most_rows_less_is_held_out() -> None:
    """Negatives mined among the positives: seven a row, so that a fifth of the rows would touch nearly all others."""
    draw = np.random.default_rng(3)
    rows = [
        (words(number, "question"), words(number), [words(other) for other in draw.integers(0, 6000, 7)])
        for number in range(6000)
    ]
    (side,) = sides_of(build_dataset(Shape.TRIPLETS, rows, chunk=3000))
    dropped, train, validation, test = np.bincount(side, minlength=4)
    assert test >= 25
    assert validation >= 10
    assert train > 2500
    assert dropped < 3300


def test_where_less_held_out_would_drop_as_many_rows_all_is_held_out() -> None:
    """Three second texts are in 120 rows each: whatever little of those is held out, the others are dropped."""
    rows = [
        (words(number % 3 if number < 300 else number), words(number % 3 if 300 <= number < 660 else number, "b"), 0.5)
        for number in range(1000)
    ]
    (side,) = sides_of(build_dataset(Shape.SCORED_PAIRS, rows, chunk=CHUNK))
    dropped, train, validation, test = np.bincount(side, minlength=4)[:4]
    assert dropped > 250  # more than a quarter, at the floor too
    assert min(validation, test) > 25  # at the floor it would be 14
    assert train > 250


def test_rows_that_all_share_a_sentence_cannot_be_split() -> None:
    rows = [(words(number), "the same hypothesis", "neutral") for number in range(500)]
    with pytest.raises(InputError, match="share sentences") as caught:
        split_of(build_dataset(Shape.NLI, rows, file="nli.tsv", chunk=CHUNK))
    assert caught.value.where == "nli.tsv"
    assert "at least 10 rows" in caught.value.expected


def test_a_negative_that_all_rows_share_drops_none_and_one_of_a_held_out_row_leaves_its_row() -> None:
    rows = [(words(n), words(n, "other"), ["the same negative", words((n + 1) % 500, "other")]) for n in range(500)]
    (split,) = split_of(build_dataset(Shape.TRIPLETS, rows, file="mined.tsv", chunk=CHUNK))
    assert len(split.train) + len(split.validation) + len(split.test) == 500
    assert not split.left_out
    assert {len(negatives) for negatives in split.train["negatives"]} == {1, 2}
    assert not is_leaking(split.train, split.test)
    assert "negatives of" in split.notes[0]


SHARED = DATA


@pytest.mark.skipif(not SHARED.is_dir(), reason="no data beside the repository")
def test_real_pairs_lose_few_rows() -> None:
    from sentloom.data import read

    data = read(SHARED / "pairs/quora_duplicates.en.tsv.gz")
    (split,) = split_of(data)
    assert len(split.dropped) < 0.1 * len(data)
    assert find_leaks(split.train, [split.validation, split.test]).counts == {}
    assert find_leaks(split.validation, [split.test]).counts == {}
