"""A text learner trains all of its model, and its model is what is saved."""

from sentloom.lab.synthesizer import TextLearner
from sentloom.writing.text_to_text import TextToText


def test_the_model_is_trained_kept_and_saved(model, tmp_path):
    learner = TextLearner(model, options=None)
    assert learner.scored is model
    assert {id(weights) for weights in learner.parameters()} == {id(weights) for weights in model.model.parameters()}
    learner.save(tmp_path / "model")
    assert TextToText.load(tmp_path / "model").sha256 == model.sha256
