"""The writer that llama.cpp runs: what it needs, and a real one if it is on this machine."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import MissingPart
from sentloom.writing.filters import Filtering
from sentloom.writing.llama import is_llama, refuse_no_llama
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, synthesize
from tests.small_data import build_dataset
from tests.writing.ledgers import rows_of


def test_only_the_writer_of_the_catalogue_is_one():
    assert is_llama("qwen-1.5b")
    assert not is_llama("smollm2")
    assert not is_llama(lambda: None)


def test_a_writer_that_is_not_here_is_refused():
    with pytest.raises(MissingPart, match="sentloom models get qwen"):
        refuse_no_llama()


@pytest.mark.long
def test_it_writes_queries_and_a_second_call_asks_nothing(downloaded, tmp_path):
    pytest.importorskip("xllamacpp")
    downloaded("qwen-1.5b")
    how = {"sampling": Sampling(greedy=True, length=32), "filtering": Filtering(round_trip=0)}
    texts = ("Aspirin is a medicine that treats pain and fever.", "The harbour of Oslo is free of ice in winter.")
    raw = build_dataset(Shape.TEXTS, [(text,) for text in texts])
    by = Execution(encoder="none", block=2)
    summaries = [synthesize(raw, "qwen-1.5b", tmp_path / "ledger", execution=by, **how) for _ in range(2)]
    assert summaries[0].sources == summaries[1].sources == 2
    assert all(row["text"] for row in rows_of(tmp_path / "ledger"))
