"""The questions of a fit folder with two real, random models."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.fitting.result import FitResult
from sentloom.ticking.answers import open_answers, read_answers
from sentloom.ticking.questions import Questions
from sentloom.ticking.verdict import find_questions, refuse_too_few, without_labels
from tests.report.results_by_hand import FULL


def test_results_are_what_each_model_finds_first(fit_folder):
    found = find_questions(fit_folder)
    result = FitResult.read(fit_folder / "report.json")
    assert (found.header.base, found.header.fitted) == (result.hashes["base"], result.hashes["model"])
    assert found.questions.total == len(found.queries) == 60
    assert found.questions.documents == 300
    models = {"base": Encoder.load(result.base), "fitted": Encoder.load(fit_folder / result.tested)}
    texts = [hit.text for hit in models["base"].search(found.queries[0], _texts(fit_folder), k=300)]
    for question in found.questions.asked[:5]:
        for side, model in models.items():
            hits = [hit.text for hit in model.search(question.query, texts, k=3) if hit.text != question.query]
            assert getattr(question, side) == hits[0]


def _texts(folder):
    return pq.read_table(folder / "corpus.parquet").column("text").to_pylist()


def test_others_must_have_answered_the_same_questions(fit_folder, tmp_path):
    found = find_questions(fit_folder)
    with open_answers(tmp_path / "one.jsonl", found.header) as file:
        file.append(found.questions.asked[0], "both")
    assert find_questions(fit_folder, [read_answers(tmp_path / "one.jsonl")]).header.subject == found.header.subject


@pytest.mark.parametrize(("label_free", "fix"), [(True, "use the base"), (False, "keep to the verdict of the fit")])
def test_models_that_hardly_differ_are_refused(label_free, fix):
    """Without contradicting a verdict that rests on labels."""
    few, result = Questions((), (0, 0, 0), 60, 300, 300), replace(FULL, label_free=label_free)
    with pytest.raises(InputError, match="a different first result for 0 of 60 held-out queries") as refused:
        refuse_too_few(few, "model.fit", result)
    assert fix in refused.value.fix


def test_the_command_is_printed_without_earlier_answers():
    command = "sentloom fit 'a b.txt' --labels one.jsonl -o model --labels 'two files.jsonl' --seed 1"
    assert without_labels(command) == "sentloom fit 'a b.txt' -o model --seed 1"
