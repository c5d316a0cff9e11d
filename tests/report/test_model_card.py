"""The model card: read by the hub's own reader, with the result's numbers and honest limitations."""

import ast
import re
from dataclasses import replace

import pytest
import yaml
from huggingface_hub import ModelCard
from hypothesis import given, settings

from sentloom.encoder import Encoder
from sentloom.report.model_card import ModelFacts, base_on_hub, facts_of, model_card
from tests.encoder.small_models import build_model_folder
from tests.report.results_by_hand import FULL, STORIES

FACTS = ModelFacts(384, 256, "mean", native=True)
FEW = settings(max_examples=25, deadline=None)


def test_the_hub_reads_it():
    card = ModelCard(model_card(FULL, FACTS)).data.to_dict()
    assert card == {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "sentloom"],
        "language": ["en"],
        "base_model": "owner/large",  # what the model started from, not what it is compared with
    }


@FEW
@given(result=STORIES)
def test_any_story_gives_a_card_that_the_hub_reads(result):
    text = model_card(result, FACTS)
    data = ModelCard(text).data
    assert data.library_name == "sentence-transformers"
    assert text.count("\n---\n") >= 1


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("embedded", "sentence-transformers/all-MiniLM-L6-v2"),
        ("owner/name", "owner/name"),
        ("owner/name@0123abc", "owner/name"),
        ("bert-base-uncased", "bert-base-uncased"),
        ("./models/mine", None),
        ("/home/me/model", None),
        ("a/b/c", None),
    ],
)
def test_a_base_is_linked_when_the_hub_knows_it(base, name):
    assert base_on_hub(base) == name


def test_a_folder_is_not_taken_for_a_name_of_the_hub(tmp_path, monkeypatch):
    (tmp_path / "models/mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert base_on_hub("models/mine") is None


def test_it_says_what_it_does_not_know():
    text = model_card(FULL, FACTS)
    assert "only on held-out rows of its own training data" in text
    assert "longer than 256 tokens are truncated" in text
    assert "the label of sts-b: worse than the base by 1.92" in text
    assert "General ability, beyond" not in text
    assert "General ability, beyond" in model_card(replace(FULL, measures=FULL.measures[:2]), FACTS)
    assert "`--force`" in model_card(replace(FULL, verdict="worse", forced=True), FACTS)
    assert "`--force`" not in text


def test_numbers_and_command_are_the_reports():
    text = model_card(FULL, FACTS)
    assert "| 58.31 (56.21 to 60.41) | 69.84 (67.74 to 71.94) | +11.53 (10.48 to 12.58) |" in text
    assert "```sh\nsentloom fit notes.txt -o models/notes\n```" in text
    assert "vectors of 384 numbers" in text


@pytest.mark.parametrize("native", [True, False])
def test_the_use_is_python(native):
    text = model_card(replace(FULL, model="models/it's mine"), replace(FACTS, native=native))
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert ast.parse(code)
    assert ("SentenceTransformer(" in code) == native
    assert ("library_name: sentence-transformers" in text) == native


@pytest.mark.parametrize(("native", "short"), [(True, "truncate_dim=64"), (False, "dimension=64")])
def test_how_to_cut_vectors_and_how_to_search(native, short):
    facts = replace(FACTS, native=native, asymmetric=True, dimensions=(384, 128, 64))
    text = model_card(FULL, facts)
    use, shorter = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert ast.parse(shorter)
    assert short in shorter
    assert "first 384, 128, 64 dimensions" in text
    assert ("encode_query" in use) == native
    assert "| 64 dimensions | MRR@10, 812 items in 640 clusters | 41.21" in text
    assert "| German: halves |" in text


def test_facts_are_the_encoders(tmp_path):
    facts = facts_of(Encoder.load(build_model_folder("bert", tmp_path / "small")))
    assert (facts.dimension, facts.pooling, facts.native) == (32, "mean", True)
    assert facts.max_length == 64
    assert (facts.asymmetric, facts.dimensions) == (False, ())


def test_all_languages_of_mixed_texts_are_named():
    mixed = replace(FULL.sources[0], language=None, languages={"en": 0.65, "de": 0.2, "pl": 0.15})
    card = model_card(replace(FULL, sources=(mixed,)), FACTS)
    assert yaml.safe_load(card.split("---")[1])["language"] == ["de", "en", "pl"]
    assert "Language of the training texts: English 65%, German 20%, Polish 15%." in card
    assert "| English 65%, German 20%, Polish 15% |" in card
