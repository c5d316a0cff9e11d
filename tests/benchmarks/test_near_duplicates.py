"""The truth that near-duplicate systems are measured against is right, and planted copies are as near as they claim."""

import random

import pytest

from benchmarks.near_duplicates import edited, exact_pairs, planted, shingle_set


def index(one, two):
    left, right = shingle_set(one), shingle_set(two)
    return len(left & right) / len(left | right)


def test_exact_pairs_are_those_of_a_plain_loop():
    draw = random.Random(0)
    texts = ["".join(draw.choices("ab ", k=draw.randint(3, 12))) for _ in range(60)]
    loop = {(i, j): index(texts[i], texts[j]) for j in range(60) for i in range(j)}
    expected = {pair: found for pair, found in loop.items() if found >= 0.5}
    assert len(expected) > 5
    assert exact_pairs(texts, 0.5) == pytest.approx(expected)


@pytest.mark.parametrize("target", [0.5, 0.8, 0.95])
def test_an_edited_copy_stays_above_its_target_and_near_it(target):
    text = "The quick brown fox jumps over the lazy dog, and then it sleeps for an hour under the old oak tree."
    found = index(text, edited(text, target, random.Random(1)))
    assert target <= found < target + 0.12  # one more character would have changed five shingles of about a hundred


def test_a_fifth_of_the_texts_gets_a_copy():
    texts = [f"sentence number {n} about something that is long enough to edit" for n in range(50)]
    assert set(texts) < set(planted(texts))
    assert 55 <= len(planted(texts)) <= 60
