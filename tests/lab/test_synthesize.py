"""What `synthesize` refuses before a model runs."""

import pytest

import sentloom
from sentloom.errors import InputError
from tests.api.small_pairs import PAIRS


def test_raw_text_has_one_column_and_a_ledger_takes_no_options_of_writing(tmp_path):
    with pytest.raises(InputError, match="several text columns: anchor, positive"):
        sentloom.lab.synthesize(PAIRS, tmp_path / "ledger")
    with pytest.raises(InputError, match="writer and sampling cannot be used without raw text"):
        sentloom.lab.synthesize(None, tmp_path / "ledger", writer="x", sampling="seed=2")
    assert not (tmp_path / "ledger").exists()
