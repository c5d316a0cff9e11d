"""Seeds depend on the text and the run's seed only."""

from hypothesis import given
from hypothesis import strategies as st

from sentloom.writing.views.pairs import seed_for


@given(st.integers(0, 1 << 40), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_seed_is_repeatable_and_fits_in_63_bits(seed, text):
    assert 0 <= seed_for(seed, text) < 1 << 63
    assert seed_for(seed, text) == seed_for(seed, text)


def test_seeds_differ_by_seed_and_text():
    assert len({seed_for(seed, f"text {number}") for seed in range(10) for number in range(100)}) == 1000
