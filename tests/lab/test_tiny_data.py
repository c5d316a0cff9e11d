"""Tiny data: every set of every suite can be scored on it, and nothing that is scored on is trained on."""

from pathlib import Path

import pytest

from sentloom.data.corpus.opening import open_data
from sentloom.data.shapes import Shape
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.suites import SUITES, find_task
from sentloom.lab.tiny import ROWS, TRAINING, write_tiny_data

SHAPES = {
    "NLI": Shape.NLI,
    "RAW": Shape.TEXTS,
    "QA": Shape.PAIRS,
    "PARALLEL": Shape.PARALLEL,
}


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    return write_tiny_data(tmp_path_factory.mktemp("tiny") / "data", None)


@pytest.mark.parametrize("suite", SUITES)
def test_every_set_is_there(values, suite):
    origin = SetSource(Path(values["SENTLOOM_DATA"]), checked=False)
    for name in SUITES[suite].sets:
        if not name.startswith("Tatoeba"):  # no table scores it
            assert find_task(f"{suite}/{name}", origin).texts["symmetric"]


@pytest.mark.parametrize("name", SHAPES)
def test_files_have_the_shape_that_recipes_expect(values, name):
    assert open_data(values[name]).shape is SHAPES[name]


def test_no_sentence_is_trained_and_scored_on(values):
    scored = {text for _, _, text in open_data(f"{values['SENTLOOM_DATA']}/sts/STSB.test.tsv").sentences()}
    for name in ("NLI", "RAW", "QA", "BOOKS"):
        assert not scored & {text for _, _, text in open_data(values[name]).sentences()}


def test_a_data_folder_is_used_as_far_as_it_goes(tmp_path):
    data = tmp_path / "given"
    (data / "sts").mkdir(parents=True)
    lines = [f"{n % 6}\tone {n}\tother {n}" for n in range(500)]
    (data / "sts" / "STS12.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n")
    values = write_tiny_data(tmp_path / "data", data)
    rows = (Path(values["SENTLOOM_DATA"]) / "sts" / "STS12.tsv").read_text().splitlines()
    assert rows[0] == "score\tsentence1\tsentence2"
    assert rows[1:] == lines[::8][:ROWS]
    assert "other 0" not in (Path(values["SENTLOOM_DATA"]) / "sts" / "STS13.tsv").read_text()


def test_files_that_are_there_are_left_alone(tmp_path):
    write_tiny_data(tmp_path / "data", None)
    (tmp_path / "data" / TRAINING["RAW"]).write_text("mine\n")
    write_tiny_data(tmp_path / "data", None)
    assert (tmp_path / "data" / TRAINING["RAW"]).read_text() == "mine\n"


@pytest.mark.parametrize("name", ["glue/QNLI", "glue/RTE", "senteval/TREC"])
def test_the_parts_of_a_set_have_the_same_labels(values, name):
    folder = Path(values["SENTLOOM_DATA"])
    parts = [folder / f"{name}.{part}.tsv" for part in ("train", "dev", "test")]
    labels = [{line.split("\t")[0] for line in path.read_text().splitlines()} for path in parts if path.is_file()]
    assert len(labels) == 2
    assert labels[0] == labels[1]
