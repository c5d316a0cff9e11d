"""The commands encode, search and mine, as a user runs them."""

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("embedded_encoder")


def test_encode_then_search_with_and_without_its_vectors(sentloom, faq, tmp_path):
    assert "Choose one, as in --column answer" in sentloom("encode", faq, "-o", tmp_path / "v.npy").stderr
    done = sentloom("encode", faq, "-o", tmp_path / "v.npy", "--column", "answer")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "v.npy").shape == (3, 384)
    query = ["search", faq, "I forgot my login", "--column", "answer", "-k", "3"]
    for extra in ([], ["--vectors", tmp_path / "v.npy"]):
        done = sentloom(*query, *extra)
        assert done.returncode == 0, done.stderr
        assert done.stdout.index("Open the settings") < done.stdout.index("On the ground floor")
        assert "line 2 · team: it      Open the settings" in done.stdout


def test_mine_finds_hard_negatives_and_says_what_was_passed_over(sentloom, faq, tmp_path):
    done = sentloom("lab", "mine", faq, "-o", tmp_path / "triplets.tsv", "--margin", "-1")
    assert done.returncode == 0, done.stderr
    assert "3 pairs, 3 with hard negatives" in done.stdout
    lines = (tmp_path / "triplets.tsv").read_text().splitlines()
    assert lines[0] == "question\tanswer\tnegative"
    assert lines[2] == "Where is the canteen?\tOn the ground floor.\tOpen the settings and choose a new one."


def test_mine_wants_pairs(sentloom, tmp_path):
    (tmp_path / "texts.txt").write_text("One line.\nAnother line.\n")
    done = sentloom("lab", "mine", tmp_path / "texts.txt", "-o", tmp_path / "t.tsv")
    assert done.returncode == 2
    assert "Expected pairs" in done.stderr


def test_workers_need_an_engine_that_has_some(sentloom, tmp_path):
    (tmp_path / "texts.txt").write_text("one\ntwo\n", "utf-8")
    done = sentloom("encode", tmp_path / "texts.txt", "-o", tmp_path / "v.npy", "--workers", "2")
    assert done.returncode == 2
    assert "the engine local has no workers" in done.stderr
