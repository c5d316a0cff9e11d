"""`evaluate` of names and encoders."""

import json

import pytest

import sentloom
from sentloom.errors import InputError
from tests.api.small_pairs import PAIRS


def test_bf16_scores_are_cached_apart(base, tmp_path):
    rows = [(a, b, n / 10) for n, (a, b) in enumerate(PAIRS[:10])]
    found = [
        sentloom.evaluate(
            str(base), rows, cache=tmp_path / "cache", precision=precision, output=tmp_path / f"{precision}.json"
        )
        for precision in ("fp32", "bf16")
    ]
    hashes = {
        json.loads((tmp_path / f"{one}.json").read_text())["models"][str(base)]["models"][0]["sha256"]
        for one in ("fp32", "bf16")
    }
    assert len(hashes) == 2
    assert all(len(one.scores) == 1 for one in found)


def test_encoders_and_names_are_scored_side_by_side_and_written(base, tmp_path):
    encoder, rows = sentloom.Encoder.load(base), PAIRS[:10]
    found = sentloom.evaluate([encoder, base], rows, output=tmp_path / "e.json")
    assert found.scores["Encoder 1"] == found.scores[str(base)]
    assert [*json.loads((tmp_path / "e.json").read_text())["models"]] == ["Encoder 1", str(base)]
    labelled = sentloom.evaluate({"x": encoder, "y": str(base)}, rows).scores
    assert labelled["x"] == labelled["y"] == found.scores["Encoder 1"]
    with pytest.raises(InputError, match="no model is given"):
        sentloom.evaluate([], rows)
