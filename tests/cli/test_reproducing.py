"""The command reproduce: tables beside published scores, what is missing, and names that do not exist."""

import json


def test_a_table_at_the_scale_tiny(sentloom, tmp_path):
    command = ("reproduce", "self-guided/figure-1", "--scale", "tiny", "--row", "max, layer 2", "-o", tmp_path / "t")
    done = sentloom(*command)
    assert done.returncode == 0, done.stderr
    assert "63.19" in done.stdout
    assert "These scores say nothing about the paper" in done.stdout
    found = json.loads((tmp_path / "t" / "self-guided" / "figure-1" / "table.json").read_text())
    assert set(found["rows"]) == {"max, layer 2"}
    (tmp_path / "t" / "tiny" / "data" / "data" / "sts" / "STSB.test.tsv").unlink()
    done = sentloom(*command)
    assert done.returncode == 1
    assert "max, layer 2: not here" in done.stdout


def test_rows_whose_parts_are_not_here_are_named(sentloom, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    done = sentloom("reproduce", "self-guided/figure-6", "-o", tmp_path / "t")
    assert done.returncode == 0, done.stderr
    assert "not here: base: sentence-transformers/bert-base-nli-mean-tokens" in " ".join(done.stdout.split())


def test_an_unknown_table_is_told_with_the_nearest(sentloom, tmp_path):
    done = sentloom("reproduce", "bsl/table-11", "-o", tmp_path / "t")
    assert done.returncode == 2
    assert "bsl/table-1" in done.stderr
    assert not (tmp_path / "t").exists()
