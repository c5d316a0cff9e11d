"""A model with its prompts: what is read, what is cut, what is kept beside the weights."""

import json
import shutil

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from sentloom.errors import InputError, ModelError
from sentloom.writing.text_to_text import TextToText
from sentloom.writing.writer import Wording
from tests.encoder.small_models import build_model_folder
from tests.writing.oracles import read_to_judge, read_to_write
from tests.writing.small_synthesizers import SHORT, build_small_t5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("t5") / "model")


@pytest.fixture(scope="module")
def model(folder):
    return TextToText.load(folder)


def pieces(folder, *texts):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [token for text in texts for token in tokenizer(text, add_special_tokens=False)["input_ids"]]


def test_the_prompts_of_table_1(folder, model):
    written = read_to_write(model, "two dogs run", "entailment")
    before, behind = 'Write two sentences that are entailment. Sentence 1: "', '" Sentence 2:'
    assert written == [*pieces(folder, before, "two dogs run", behind), 1]
    before = 'Write two sentences that are contradictory. Sentence 1: "'
    assert read_to_write(model, "two dogs run", "contradiction") == [*pieces(folder, before, "two dogs run", behind), 1]
    judged = pieces(folder, 'if "', "two dogs run", '", does this mean that "', "a man eats", '"? true or false')
    assert read_to_judge(model, "two dogs run", "a man eats") == [*judged, 1]


def test_only_sentences_are_cut(folder):
    model = TextToText.load(folder, source_length=3, target_length=4)
    long = "a man eats at home near the sea in the park on the train"
    cut = pieces(folder, long)[:3]
    before, behind = (pieces(folder, part) for part in model.wording.entailment)
    assert read_to_write(model, long, "entailment") == [*before, *cut, *behind, 1]
    first, between, last = (pieces(folder, part) for part in model.wording.judge)
    assert read_to_judge(model, long, long) == [*first, *cut, *between, *cut, *last, 1]
    assert model.target_ids(long) == [*cut, 1]


def test_other_words_and_their_way_through_a_folder(folder, tmp_path):
    model = TextToText.load(folder, wording=SHORT, source_length=20, target_length=10)
    model.save(tmp_path / "saved")
    again = TextToText.load(tmp_path / "saved")
    assert (again.wording, again.source_length, again.target_length) == (SHORT, 20, 10)
    assert again.sha256 == model.sha256
    assert TextToText.load(tmp_path / "saved", wording=Wording()).sha256 != model.sha256
    plain = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved")  # an ordinary folder
    ids = torch.tensor([[5, 6, 1]])
    with torch.inference_mode():
        ours, theirs = (one(input_ids=ids, decoder_input_ids=ids).logits for one in (again.model, plain.eval()))
    assert torch.equal(ours, theirs)


def test_the_hash_sees_weights(folder):
    one, other = TextToText.load(folder), TextToText.load(folder)
    assert one.sha256 == other.sha256
    with torch.no_grad():
        next(other.model.parameters())[0, 0] += 1e-3
    assert one.sha256 != other.sha256


def test_text_there_and_back(model):
    assert model.text_of(model.target_ids("two dogs run at home")) == "two dogs run at home"


def test_verdicts_must_differ_in_their_first_token(folder):
    with pytest.raises(InputError, match="begin with the same token"):
        TextToText.load(folder, wording=Wording(true="true", false="true no"))


def test_what_is_no_text_to_text_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="text-to-text"):
        TextToText.load(build_model_folder("bert", tmp_path / "bert"))


def test_a_damaged_settings_file_is_told(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / "synthesizer.json").write_text(json.dumps({"wording": {"true": 3}}))
    with pytest.raises(ModelError, match=r"synthesizer\.json"):
        TextToText.load(tmp_path / "model")
