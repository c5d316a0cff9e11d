"""Prepare: real files become inputs, splits, training files and tasks; labels decide over raw text."""

import pyarrow.parquet as pq
import pytest

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.fitting.prepare import prepare_inputs
from tests.fitting import small_base
from tests.fitting.test_request import request


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return Encoder.load(small_base.build_base(tmp_path_factory.mktemp("base")))


def test_labels_decide_and_raw_text_only_trains(base, tmp_path):
    files = small_base.pairs(tmp_path / "faq.tsv"), small_base.prose(tmp_path / "raw.txt")
    said = []
    found = prepare_inputs(request(data=tuple(map(str, files)), output=tmp_path / "model"), base, said.append)
    assert [one.name for one in found.inputs] == list(map(str, files))
    assert {one.shape: one.rows for one in found.training_sets} == {
        Shape.PAIRS: len(found.splits[0].train),
        Shape.TEXTS: len(found.splits[1].train),
    }
    assert [len(read(file)) for one in found.training_sets for file in one.files] == [
        one.rows for one in found.training_sets
    ]
    assert (found.labelled, found.label_free) == (True, False)
    assert [part.name for part in found.test] == [str(files[0])]
    assert [task.name for task in found.deciding(found.validation)] == [str(files[0])]
    assert pq.read_table(tmp_path / "model.fit" / "corpus.parquet").num_rows == 900
    assert said[0].startswith(f"{files[0]}: 500 pairs (anchor, positive)")
    assert found.training_sets[0].length == 32  # the base reads no more


def test_raw_text_alone_is_label_free_unless_a_set_decides(base, tmp_path):
    text, asked = small_base.prose(tmp_path / "raw.txt"), small_base.pairs(tmp_path / "asked.tsv", 60)
    plain = request(data=(str(text),), output=tmp_path / "model")
    assert prepare_inputs(plain, base, [].append).label_free
    against = request(data=(str(text),), output=tmp_path / "model", against=(str(asked),))
    assert not prepare_inputs(against, base, [].append).label_free
