"""What a rounded model is scored on: named sets, then the fit's validation rows, then everyday triplets."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sentloom.data import read
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.export.export import judging_tasks, mean_score, validation_tasks
from tests.encoder.small_models import SENTENCES
from tests.report.results_by_hand import FULL

PAIRS = [(f"question {n}: {text}", f"answer {n}: {text[::-1]}") for n, text in enumerate(SENTENCES)]


@pytest.fixture
def fitted(bert, tmp_path):
    """A model with the rows that a fit leaves beside it."""
    model = Path(shutil.copytree(bert, tmp_path / "model"))
    data = tmp_path / "model.fit" / "data"
    write(read(PAIRS), data / "1-pairs-validation.parquet")
    write(read(SENTENCES), data / "2-texts-validation.parquet")
    write(read(PAIRS[:4]), data / "1-pairs-test.parquet")
    return model


def test_labelled_validation_rows_are_used_and_raw_text_is_not(fitted):
    (task,) = validation_tasks(fitted)
    assert task.name == "validation rows of input 1"
    assert len(task.texts["query"]) == len(PAIRS)
    assert [judging.name for judging in judging_tasks(Encoder.load(fitted))] == [task.name]


def test_validation_rows_have_the_name_of_their_file(fitted):
    sources = [replace(FULL.sources[0], name="/somewhere/our faq.csv"), *FULL.sources[1:]]
    replace(FULL, sources=tuple(sources)).write(fitted.parent / "model.fit/report.json")
    assert [task.name for task in validation_tasks(fitted)] == ["validation rows of our faq.csv"]


def test_everyday_triplets_without_a_fit(bert):
    assert [task.name for task in judging_tasks(Encoder.load(bert))] == ["general triplets"]


def test_named_files_come_first(fitted, tmp_path):
    file = tmp_path / "scored.tsv"
    rows = [f"{text}\t{text} again\t{n}" for n, text in enumerate(SENTENCES)]
    file.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows), "utf-8")
    (task,) = judging_tasks(Encoder.load(fitted), [str(file)])
    assert str(file) in task.name


def test_the_mean_is_over_sets(fitted):
    encoder = Encoder.load(fitted)
    (first,) = validation_tasks(fitted)
    other = judging_tasks(Encoder.load(encoder.backbone.model.config.name_or_path))[0]
    apart = [mean_score(encoder, [task]) for task in (first, other)]
    assert mean_score(encoder, [first, other]) == pytest.approx(sum(apart) / 2)
