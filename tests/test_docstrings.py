"""The docstring demo: it needs a held-out package, and shows what both encoders find."""

import pytest

from sentloom.data.corpus.docstrings import harvest
from sentloom.data.shapes import Shape
from sentloom.demo import FOUND, QUESTIONS, run, search
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.report.printing import printed
from tests.small_data import build_dataset


def test_a_corpus_without_a_held_out_package_is_refused(tmp_path):
    corpus = harvest(["click"], [], workers=1)
    with pytest.raises(InputError, match="no package is held out"):
        run(tmp_path / "demo", "embedded", corpus, "1s", lambda part: None)
    assert list((tmp_path / "demo").glob("*.parquet")) == []


def test_every_question_is_answered_by_both_encoders(tmp_path):
    encoder = Encoder.load(build_model_folder("bert", tmp_path / "bert"))
    names = [f"name{number}" for number in range(len(SENTENCES))]
    shown = []
    search(encoder, encoder, build_dataset(Shape.PAIRS, [*zip(names, SENTENCES, strict=True)]), shown.append)
    text = "\n".join(printed(part) for part in shown)
    assert all(question in text for question in QUESTIONS)
    assert text.count("before: name") == text.count("after: name") == FOUND * len(QUESTIONS)
