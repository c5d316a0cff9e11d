"""What all language models share: prompts, cuts, padding."""

import pytest

from sentloom.errors import InputError
from sentloom.writing.causal import Causal
from sentloom.writing.language_model import padded
from sentloom.writing.writer import Wording
from tests.writing.small_causal import build_small_causal


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_small_causal(tmp_path_factory.mktemp("model") / "causal")


def test_padding_on_either_side(model):
    ids, real = padded([[5, 6, 7], [8]], model)
    assert ids.tolist() == [[5, 6, 7], [8, model.pad, model.pad]]
    assert real.tolist() == [[True, True, True], [True, False, False]]
    ids, real = padded([[5, 6, 7], [8]], model, left=True)
    assert ids.tolist() == [[5, 6, 7], [model.pad, model.pad, 8]]
    assert real.tolist() == [[True, True, True], [False, False, True]]


def test_every_row_begins_with_the_opening_of_its_prompt(model):
    parts = model.prompt_ids(model.wording.prompt("entailment"))
    row = model.framed(parts, model.sentences(["a man sleeps"]))
    opening = model.opening(parts)
    assert row[: len(opening)] == opening
    assert len(opening) >= len(parts[0])


def test_the_hash_knows_the_wording_and_the_lengths(folder):
    one = Causal.load(folder)
    assert one.sha256 == Causal.load(folder).sha256
    assert one.sha256 != Causal.load(folder, source_length=9).sha256
    assert one.sha256 != Causal.load(folder, wording=Wording()).sha256


def test_verdicts_must_differ_in_their_first_token(folder):
    with pytest.raises(InputError, match="begin with the same token"):
        Causal.load(folder, wording=Wording(true="true", false="true no"))
