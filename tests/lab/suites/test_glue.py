"""GLUE by fine-tuning: the first tenth of dev chooses, the rest is scored; the seed is part of the cached score's name."""

import pytest

from sentloom.encoder import Encoder
from sentloom.errors import InputError, MissingPart
from sentloom.evaluation.bench import score_file, score_tasks
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.suites import find_task
from sentloom.lab.baselines.words import TfIdf
from sentloom.lab.suites import glue
from sentloom.lab.suites.glue import GLUE
from tests.encoder.small_models import build_model_folder
from tests.lab.suites.test_sentglue import put


@pytest.fixture
def folder(tmp_path):
    rows = [(n % 2, ("the dog", "a man")[n % 2] + f" {n}") for n in range(40)]
    put(tmp_path, "glue/CoLA.train", rows)
    put(tmp_path, "glue/CoLA.dev", [(n % 2, f"{('dog', 'man')[n % 2]} {n}") for n in range(30)])
    return tmp_path


def test_the_first_tenth_of_dev_chooses_and_the_rest_is_scored(folder, monkeypatch):
    seen = {}

    def watched(encoder, parts, score, **options):
        seen.update(**parts._asdict(), **options)
        return fine_tune(encoder, parts, score, **options)

    fine_tune = glue.fine_tune
    monkeypatch.setattr(glue, "fine_tune", watched)
    encoder = Encoder.load(build_model_folder("bert", folder / "bert"))
    task = find_task("glue/CoLA", SetSource(folder, checked=False))
    (scores,) = score_tasks(encoder, [task.under(7)])
    assert (len(seen["train"]), len(seen["choosing"]), len(seen["test"])) == (40, 3, 27)
    assert seen["test"].texts == ([f"{('dog', 'man')[n % 2]} {n}" for n in range(3, 30)],)
    assert seen["seed"] == 7
    assert scores[task.main].items[:, 1].tolist() == [n % 2 for n in range(3, 30)]
    assert task.main == "matthews"


def test_the_set_is_not_the_one_of_sentglue_and_each_seed_has_its_score(folder):
    origin = SetSource(folder, checked=False)
    tuned, probed = find_task("glue/CoLA", origin), find_task("CoLA", origin)
    files = {score_file(folder, "model", task) for task in (tuned, probed, tuned.under(2), tuned.under(3))}
    assert len(files) == 4
    assert tuned.texts == probed.texts


def test_qnli_needs_its_training_part(folder):
    put(folder, "glue/QNLI.dev", [("entailment", "a", "b")], "label\tpremise\thypothesis")
    with pytest.raises(MissingPart, match="QNLI train"):
        GLUE.load("QNLI", SetSource(folder, checked=False))


def test_a_baseline_cannot_be_fine_tuned(folder):
    task = find_task("glue/CoLA", SetSource(folder, checked=False))
    with pytest.raises(InputError, match=r"(?s)CoLA, fine-tuning.*no weights"):
        score_tasks(TfIdf(), [task])
