"""Near duplicates equal brute force: the Jaccard index of all pairs, with Python's own sets."""

import gzip
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.hygiene.near_duplicates import (
    HASHES,
    SHINGLE,
    banding,
    candidate_pairs,
    connect,
    coordinated_sample,
    first_of_group,
    jaccard,
    most_different_bits,
    shingles,
    signatures,
    sketch,
)
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from tests.paths import DATA
from tests.small_data import build_dataset

SENTENCES = DATA / "text/sentences.en.tsv.gz"


def array(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def shingle_set(text: str) -> set[str]:
    padded = text.lower().ljust(SHINGLE, "\0")
    return {padded[start : start + SHINGLE] for start in range(len(padded) - SHINGLE + 1)}


def index(first: str, second: str) -> float:
    left, right = shingle_set(first), shingle_set(second)
    return len(left & right) / len(left | right)


def like_pairs(texts: list[str], threshold: float) -> np.ndarray:
    """Find all pairs of texts that reach the threshold, with an inverted index of shingles."""
    sets = [shingle_set(text) for text in texts]
    holders: dict[str, list[int]] = {}
    pairs = []
    for number, own in enumerate(sets):
        shared = Counter(other for shingle in own for other in holders.get(shingle, ()))
        pairs += [(o, number) for o, n in shared.items() if n / (len(own) + len(sets[o]) - n) >= threshold]
        for shingle in own:
            holders.setdefault(shingle, []).append(number)
    return np.array(pairs, np.int64).reshape(-1, 2)


def notices(count: int, seed: int) -> list[str]:
    """Make sentences from one template, with thousands of pairs near the threshold: the hard case for buckets."""
    random = np.random.default_rng(seed)
    words = ("amber", "crimson", "emerald library", "small tool", "violet")
    months = ("January", "May", "June", "October")
    return [
        f"Release {random.integers(30)}.{random.integers(10)} of the {words[random.integers(5)]} came out in "
        f"{months[random.integers(4)]} {random.integers(1990, 2020)} with many repairs"
        for _ in range(count)
    ]


def unlike(count: int, seed: int) -> list[str]:
    """Make texts of random letters, no two similar."""
    random = np.random.default_rng(seed)
    return ["".join(random.choice(list("abcdefghijklmnop "), 60)) for _ in range(count)]


def test_shingles_are_windows_within_one_text() -> None:
    values, starts = shingles(array(["abcdefg", "bcdef", "", "ab", "ABCDEFG"]))
    assert starts.tolist() == [0, 3, 4, 5, 6]
    assert len(values) == 9
    assert values[1] == values[3]  # bcdef
    assert values[6:].tolist() == values[:3].tolist()  # case is ignored
    assert len(set(values.tolist())) == 5


def test_no_texts_have_no_shingles() -> None:
    values, starts = shingles(array([]))
    assert (len(values), len(starts)) == (0, 0)


TEXTS = st.text(alphabet="abAB é一二🙂", max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=20))
def test_jaccard_against_sets(pairs: list[tuple[str, str]]) -> None:
    indices = jaccard(array([left for left, _ in pairs]), array([right for _, right in pairs]))
    np.testing.assert_allclose(indices, [index(left, right) for left, right in pairs])


def test_signatures_agree_as_often_as_the_jaccard_index_says() -> None:
    left = "a flock of geese passed over the frozen lake in the morning"
    right = "a flock of geese passed over the frozen pond in the evening"
    random = np.random.default_rng(5)
    factors, terms = random.integers(0, 1 << 32, (2, 6400), np.uint32)
    least = signatures(*shingles(array([left, right])), factors | np.uint32(1), terms)
    expected = index(left, right)
    deviation = np.sqrt(expected * (1 - expected) / 6400)
    assert abs((least[0:, 0] == least[:, 1]).mean() - expected) < 4 * deviation
    bits = sketch(least)
    differing = np.bitwise_count(bits[:, 0] ^ bits[:, 1]).sum() / 6400
    assert abs(differing - (1 - expected) / 2) < 4 * deviation


def test_signature_is_the_smallest_permuted_hash() -> None:
    values, starts = shingles(array(["one text or another", "two"]))
    least = signatures(values, starts, np.array([7, 9], np.uint32), np.array([1, 2], np.uint32))
    short = [int(value) >> 32 for value in values]
    parts = short[: starts[1]], short[starts[1] :]
    expected = [[min((f * x + t) % 2**32 for x in part) for part in parts] for f, t in ((7, 1), (9, 2))]
    assert least.tolist() == expected


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.75, 0.8, 0.9, 0.99, 1.0])
def test_bands_find_nearly_every_pair_at_the_threshold(threshold: float) -> None:
    bands, rows = banding(threshold)
    assert bands * rows <= HASHES
    assert 1 - (1 - threshold**rows) ** bands >= 0.999


def test_banding_by_hand() -> None:
    # 0.8^5 = 0.328: 18 bands miss 0.672^18 = 0.0008. With 6 hashes per band, 23 bands and so 138 hashes would be needed.
    assert banding(0.8) == (18, 5)


def test_candidates_share_a_band_and_the_sketch() -> None:
    bands = [pa.array([1, 1, 2, 1], pa.uint64()), pa.array([5, 6, 6, 7], pa.uint64())]
    sketches = [np.array([0b000, 0b001, 0b001, 0b111], np.uint64)]
    assert candidate_pairs(bands, sketches, 9).tolist() == [[0, 1], [0, 3], [1, 2], [1, 3]]
    assert candidate_pairs(bands, sketches, 1).tolist() == [[0, 1], [1, 2]]
    assert candidate_pairs([pa.array(range(4), pa.uint64())], sketches, 9).tolist() == []


def test_bits_that_may_differ() -> None:
    assert most_different_bits(1.0) == 0
    # At 0.8 one bit in ten differs: 12.8 of 128, plus four standard deviations of sqrt(128 * 0.1 * 0.9) = 3.394.
    assert most_different_bits(0.8) == pytest.approx(12.8 + 4 * 3.394, abs=0.01)


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_connect_equals_label_propagation(case: tuple[int, list[tuple[int, int]]]) -> None:
    size, pairs = case
    label = list(range(size))
    for _ in range(size):
        for left, right in pairs:
            label[left] = label[right] = min(label[left], label[right])
    assert connect(size, np.array(pairs, np.int64).reshape(-1, 2)).tolist() == label


@pytest.mark.parametrize(
    "threshold", [pytest.param(0.6, marks=pytest.mark.long), 0.7, pytest.param(0.8, marks=pytest.mark.long)]
)
def test_groups_equal_brute_force(threshold: float) -> None:
    texts = [text for pair in zip(notices(700, 1), unlike(700, 2), strict=True) for text in pair]
    expected = connect(len(texts), like_pairs(texts, threshold)) != np.arange(len(texts))
    first = first_of_group(build_dataset(Shape.TEXTS, [(text,) for text in texts], chunk=333), threshold)
    dropped = first != np.arange(len(texts))
    assert not (dropped & ~expected).any()
    assert dropped.sum() >= 0.98 * expected.sum() > 10


def test_groups_of_real_sentences_equal_brute_force() -> None:
    if not SENTENCES.exists():
        pytest.skip("the sentences of the shared data folder are not here")
    with gzip.open(SENTENCES, "rt", encoding="utf-8") as lines:
        texts = [line.split("\t")[0] for line in lines]
    texts = sorted({text for text in texts if len(text) < 60})[:4000]  # neighbours have similar beginnings
    expected = connect(len(texts), like_pairs(texts, 0.7)) != np.arange(len(texts))
    dropped = first_of_group(build_dataset(Shape.TEXTS, [(text,) for text in texts], chunk=1000), 0.7) != np.arange(
        len(texts)
    )
    assert not (dropped & ~expected).any()
    assert dropped.sum() >= 0.98 * expected.sum() > 50


def test_groups_depend_on_neither_seed_nor_chunks() -> None:
    rows = [(text + end,) for end in ("", " again") for text in unlike(150, 3)]
    expected = [*range(150), *range(150)]
    assert first_of_group(build_dataset(Shape.TEXTS, rows, chunk=300), 0.8, seed=1).tolist() == expected
    assert first_of_group(build_dataset(Shape.TEXTS, rows, chunk=7), 0.8, seed=1).tolist() == expected
    assert first_of_group(build_dataset(Shape.TEXTS, rows, chunk=300), 0.8, seed=2).tolist() == expected


def test_one_seed_gives_one_result() -> None:
    dataset = build_dataset(Shape.TEXTS, [(text,) for text in notices(300, 3)], chunk=100)
    assert first_of_group(dataset, 0.75, seed=4).tolist() == first_of_group(dataset, 0.75, seed=4).tolist()


def test_the_first_of_a_chain_is_kept() -> None:
    base = "the keeper of the lighthouse wrote a letter every evening"
    chain = [base, base + " to his", base + " to his sister", "something else entirely, of another kind"]
    links = [index(chain[left], chain[right]) >= 0.8 for left, right in combinations(range(3), 2)]
    assert links == [True, False, True]
    assert first_of_group(build_dataset(Shape.TEXTS, [(text,) for text in chain]), 0.8).tolist() == [0, 0, 0, 3]


def test_short_and_equal_texts() -> None:
    texts = ["", "a", "ab", "a", "", "A", "一", "一"]
    assert first_of_group(build_dataset(Shape.TEXTS, [(text,) for text in texts]), 0.8).tolist() == [
        0,
        1,
        2,
        1,
        0,
        1,
        6,
        6,
    ]


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_for_near_duplicates(rows: int) -> None:
    assert first_of_group(build_dataset(Shape.TEXTS, [("a",)] * rows), 0.8).tolist() == list(range(rows))


LONG = "a long answer that two different questions share, word for word, to its very end"


def test_every_column_must_be_similar() -> None:
    pairs = build_dataset(
        Shape.PAIRS, [("what is it?", LONG), ("who was she?", LONG), ("what is it!", LONG), ("What is it?", LONG + ".")]
    )
    assert index("what is it?", "what is it!") < 0.8
    assert first_of_group(pairs, 0.8).tolist() == [0, 1, 2, 0]


def test_labels_scores_and_negatives_must_be_equal_or_similar() -> None:
    labelled = build_dataset(Shape.CLASSIFICATION, [(LONG, "yes"), (LONG + ".", "no"), (LONG + "!", "yes")])
    assert first_of_group(labelled, 0.8).tolist() == [0, 1, 0]
    scored = build_dataset(Shape.SCORED_PAIRS, [(LONG, LONG, 1.0), (LONG, LONG, 2.0), (LONG, LONG + ".", 1.0)])
    assert first_of_group(scored, 0.8).tolist() == [0, 1, 0]
    triplets = build_dataset(
        Shape.TRIPLETS, [(LONG, LONG, ["one negative"]), (LONG, LONG, ["another one"]), (LONG, LONG, ["one negative"])]
    )
    assert first_of_group(triplets, 0.8).tolist() == [0, 1, 0]


@pytest.mark.parametrize("threshold", [0.0, 0.2, 1.01, float("nan")])
def test_thresholds_out_of_range_are_refused(threshold: float) -> None:
    with pytest.raises(InputError):
        first_of_group(build_dataset(Shape.TEXTS, [("a",)]), threshold)


def test_a_sample_keeps_near_duplicates_together() -> None:
    doubled = [(text,) for text in unlike(1500, 7) for text in (text, text + " again")]  # Jaccard about 0.9
    dataset = build_dataset(Shape.TEXTS, doubled, chunk=500)
    rows = coordinated_sample(dataset, 600)
    assert 400 < len(rows) < 800
    assert sorted(set(rows.tolist())) == rows.tolist()
    complete = np.isin(rows ^ 1, rows).mean()  # partners are 2k and 2k + 1; a plain sample would contain one in five
    assert complete > 0.8
    prefixed = build_dataset(
        Shape.TEXTS, [("the same beginning of every row " * 3 + str(row),) for row in range(500)], chunk=100
    )
    assert (
        max(len(coordinated_sample(prefixed, 50, seed)) for seed in range(40)) == 100
    )  # all drawn at once, and truncated
    assert coordinated_sample(dataset, 3000).tolist() == list(range(3000))
