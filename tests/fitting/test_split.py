"""Splits: the promises as properties, by Python's own sets; sizes and odd data by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.errors import InputError
from sentloom.fitting.sentence_keys import sentences
from sentloom.fitting.split import DROPPED, TEST, TRAIN, VALIDATION, Split, sides, split_all
from sentloom.hygiene.leaks import find_leaks
from tests.paths import DATA
from tests.small_data import build_dataset

CHUNK = 150


@pytest.fixture(scope="module", autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SENTLOOM_SCRATCH", str(tmp_path_factory.mktemp("scratch")))
        yield


def drawn_rows(shape: Shape, size: int, vocabulary: int, seed: int) -> list[tuple]:
    """Rows of sentences that come back now and then, some of them in another case or with a full stop."""
    draw = np.random.default_rng(seed)

    def sentence() -> str:
        text = f"word {draw.integers(vocabulary)}"
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
        return split_all(datas)
    except InputError:
        assume(False)
        raise


drawn = st.tuples(st.sampled_from(Shape), st.integers(100, 400), st.integers(300, 3000), st.integers(0, 10**6))


def bare(data: Dataset) -> set[str]:
    return {text.lower().rstrip(".!") for _, _, text in data.sentences()}


def is_leaking(train: Dataset, held_out: Dataset) -> bool:
    return not bare(train).isdisjoint(bare(held_out))


@settings(max_examples=25)
@given(drawn)
def test_sides_share_no_sentence_and_every_row_is_accounted_for(case) -> None:
    shape, *numbers = case
    data = build_dataset(shape, drawn_rows(shape, *numbers), chunk=CHUNK)
    (found,) = try_split(data)
    assert not is_leaking(found.train, found.validation)
    assert not is_leaking(found.train, found.test)
    assert not is_leaking(found.validation, found.test)
    parts = contents(found.train) + contents(found.validation) + contents(found.test)
    assert parts <= contents(data)
    assert parts.total() + found.dropped == len(data)


@settings(max_examples=15)
@given(drawn, drawn)
def test_what_one_input_holds_out_no_input_trains_or_validates_on(one, two) -> None:
    datas = [build_dataset(shape, drawn_rows(shape, *numbers), chunk=CHUNK) for shape, *numbers in (one, two)]
    splits = try_split(*datas)
    for mine in splits:
        for other in splits:
            assert not is_leaking(mine.train, other.validation)
            assert not is_leaking(mine.train, other.test)
            assert not is_leaking(mine.validation, other.test)


@settings(max_examples=25)
@given(drawn, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random) -> None:
    shape, *numbers = case
    rows = drawn_rows(shape, *numbers)
    order = list(range(len(rows)))
    random.shuffle(order)
    (plain,) = sides([sentences(build_dataset(shape, rows, chunk=CHUNK))])
    (mixed,) = sides([sentences(build_dataset(shape, [rows[at] for at in order], chunk=90))])
    assert mixed.tolist() == plain[order].tolist()


@settings(max_examples=20)
@given(st.integers(100, 1500), st.integers(1, 1500), st.integers(0, 10**6))
def test_added_rows_move_no_training_row_among_the_held_out_ones(before: int, added: int, start: int) -> None:
    rows = [(f"text number {start + number}",) for number in range(before + added)]
    (old,) = sides([sentences(build_dataset(Shape.TEXTS, rows[:before], chunk=1500))])
    (new,) = sides([sentences(build_dataset(Shape.TEXTS, rows, chunk=1500))])
    assert set(new[:before][old == TRAIN]) == {TRAIN}
    assert TEST not in new[:before][old == VALIDATION]


def sizes(rows: int) -> list[int]:
    data = build_dataset(Shape.TEXTS, [(f"text number {number}",) for number in range(rows)], chunk=4096)
    return np.bincount(sides([sentences(data)])[0], minlength=4).tolist()


def test_sizes_have_a_floor_a_share_and_a_cap() -> None:
    assert sizes(100) == [0, 50, 25, 25]
    assert sizes(25_000) == [0, 23_000, 1000, 1000]
    dropped, train, validation, test = sizes(5000)
    assert (dropped, train + validation + test) == (0, 5000)
    assert validation == pytest.approx(500, abs=4 * np.sqrt(5000 * 0.1 * 0.9))  # four deviations of a binomial
    assert test == pytest.approx(500, abs=4 * np.sqrt(5000 * 0.1 * 0.9))


def test_the_side_that_matters_less_gives_way() -> None:
    """Every row draws by its first text; the second one is common to three rows of three sides."""
    data = build_dataset(
        Shape.PAIRS, [(f"question {number}", f"answer {number}") for number in range(1000)], chunk=CHUNK
    )
    (free,) = sides([sentences(data)])
    train, validation, test = (int(np.flatnonzero(free == one)[0]) for one in (TRAIN, VALIDATION, TEST))
    rows = [(f"question {number}", f"answer {number}") for number in range(1000)]
    for one in (train, validation, test):
        rows[one] = (rows[one][0], "the same to all")
    (found,) = sides([sentences(build_dataset(Shape.PAIRS, rows, chunk=CHUNK))])
    assert [found[train], found[validation], found[test]] == [DROPPED, DROPPED, TEST]
    others = np.delete(np.arange(1000), [train, validation, test])
    assert found[others].tolist() == free[others].tolist()


def test_few_answers_to_many_questions_are_split_by_answer() -> None:
    rows = [(f"how about {number}", f"answer {number % 60}") for number in range(3000)]
    (found,) = split_all([build_dataset(Shape.PAIRS, rows, chunk=CHUNK)])
    assert found.dropped == 0
    answers = [set(part.column("positive").to_pylist()) for part in (found.train, found.validation, found.test)]
    assert sum(map(len, answers)) == 60  # each answer is on one side
    assert len(found.train) > 2000


def test_nli_is_split_by_premise_whatever_its_hypotheses() -> None:
    rows = [(f"premise {number // 3}", f"hypothesis {number}", label) for number in range(900) for label in ["neutral"]]
    (found,) = split_all([build_dataset(Shape.NLI, rows, chunk=CHUNK)])
    premises = [set(part.column("premise").to_pylist()) for part in (found.train, found.validation, found.test)]
    assert sum(map(len, premises)) == 300
    assert found.dropped == 0


def test_where_sharing_would_drop_most_rows_less_is_held_out() -> None:
    """Negatives mined among the positives: seven a row, so that a fifth of the rows would touch nearly all others."""
    draw = np.random.default_rng(3)
    rows = [
        (f"question {number}", f"answer {number}", [f"answer {other}" for other in draw.integers(0, 6000, 7)])
        for number in range(6000)
    ]
    (found,) = sides([sentences(build_dataset(Shape.TRIPLETS, rows, chunk=3000))])
    dropped, train, validation, test = np.bincount(found, minlength=4)
    assert test >= 25
    assert validation >= 10
    assert train > 3000
    assert dropped < 3000


def test_rows_that_all_share_a_sentence_cannot_be_split() -> None:
    rows = [(f"text {number}", f"other {number}", ["the same negative"]) for number in range(500)]
    with pytest.raises(InputError, match="share sentences") as caught:
        split_all([build_dataset(Shape.TRIPLETS, rows, file="mined.tsv", chunk=CHUNK)])
    assert caught.value.where == "mined.tsv"
    assert "at least 10 rows" in caught.value.expected


SHARED = DATA


@pytest.mark.skipif(not SHARED.is_dir(), reason="no data beside the repository")
def test_real_pairs_lose_few_rows() -> None:
    from sentloom.data import read

    data = read(SHARED / "pairs/quora_duplicates.en.tsv.gz")
    (found,) = split_all([data])
    assert found.dropped < 0.1 * len(data)
    assert find_leaks(found.train, [found.validation, found.test]).counts == {}
    assert find_leaks(found.validation, [found.test]).counts == {}
