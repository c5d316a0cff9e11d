"""What a plan needs and this machine lacks."""

import pytest

from sentloom.engine.building import stage
from sentloom.engine.needs import Need, needs
from sentloom.engine.plan import Plan


@pytest.fixture
def empty_hub(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def plan(base, *data):
    return Plan("mine", base=base, stages=(stage("simcse", name="s", data=list(data), steps=1),))


def test_files_are_missing_and_names_of_the_hub_are_downloaded(tmp_path, empty_hub):
    assert needs(plan("owner/model", str(tmp_path / "a.txt"), "owner/data:train")) == [
        Need("base", "owner/model", on_hub=True),
        Need("data of s", str(tmp_path / "a.txt"), on_hub=False),
        Need("data of s", "owner/data:train", on_hub=True),
    ]


def test_nothing_is_needed_that_is_here_or_in_the_cache(tmp_path, empty_hub):
    (tmp_path / "a.txt").write_text("one\n")
    (empty_hub / "models--owner--model").mkdir(parents=True)
    (empty_hub / "datasets--owner--data").mkdir()
    assert needs(plan("owner/model", str(tmp_path / "a.txt"), "owner/data:train")) == []
    assert needs(plan("embedded", str(tmp_path / "a.txt"))) == []
