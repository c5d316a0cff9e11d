"""The catalogue itself: every entry is complete, and names mean what they say."""

import re

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.catalogue.entries import Carrier
from sentloom.encoder.catalogue.listed import CATALOGUE, entry_named
from sentloom.encoder.locate import locate, refuse_absent
from sentloom.errors import InputError, MissingPart, ModelError
from tests.encoder.small_models import build_model_folder

DIGEST = re.compile("[0-9a-f]{64}")


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_hash_is_whole_and_every_member_has_one(name):
    entry = CATALOGUE[name]
    assert all(map(DIGEST.fullmatch, entry.files.values()))
    assert entry.licence
    assert entry.languages
    assert entry.size > 0
    if isinstance(entry.origin, Carrier):
        assert entry.origin.members.keys() == entry.origin.sources.keys()
        assert all(DIGEST.fullmatch(archive.sha256) for archive in entry.origin.archives)
        assert len(entry.origin.pieces) in (0, len(entry.origin.archives))


def test_encoders_say_what_users_choose_by():
    for entry in CATALOGUE.values():
        if entry.use == "encoder":
            assert entry.dimensions
            assert entry.tokens
            assert entry.parameters
            assert entry.scores
            assert entry.fidelity


def test_an_unknown_name_is_refused_with_those_that_are_known():
    with pytest.raises(ModelError, match=r"the catalogue has no such model(.|\n)*bge-small"):
        entry_named("bge-large")


def test_a_model_that_is_not_here_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path))
    with pytest.raises(MissingPart, match=r"(?s)encoder 'mpnet'.*405 MB to download.*Run: sentloom models get mpnet"):
        refuse_absent("mpnet")


def test_a_folder_of_the_same_name_is_ambiguous(tmp_path, monkeypatch):
    build_model_folder("bert", tmp_path / "mpnet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"(?s)same name.*\./mpnet"):
        locate("mpnet")
    assert Encoder.load("./mpnet").dimension == Encoder.load(tmp_path / "mpnet").dimension


def test_a_name_of_the_catalogue_has_no_revisions():
    with pytest.raises(InputError, match="has no revisions"):
        locate("bge-small", "main")


@pytest.mark.parametrize("name", ["reranker", "en-pt"])
def test_what_gives_no_vectors_is_no_encoder(name):
    with pytest.raises(ModelError, match="which gives no vectors"):
        Encoder.load(name)
