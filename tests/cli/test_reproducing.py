"""The command reproduce: tables beside published scores, what is missing, and names that do not exist."""

import json


def test_a_table_at_the_scale_tiny(sentloom, tmp_path):
    command = (
        "lab",
        "reproduce",
        "self-guided/figure-1",
        "--scale",
        "tiny",
        "--row",
        "max, layer 2",
        "-o",
        tmp_path / "t",
    )
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


def test_a_row_is_run_in_every_table_that_has_it_and_the_other_rows_of_a_table_stay(sentloom, tmp_path):
    tiny = ("--scale", "tiny", "-o", tmp_path / "t")
    for row in ("max, layer 2", "max, layer 3"):
        done = sentloom("lab", "reproduce", "self-guided/figure-1", "self-guided/figure-6", *tiny, "--row", row)
        assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "t/self-guided/figure-1/table.json").read_text())
    assert list(found["rows"]) == ["max, layer 2", "max, layer 3"]
    assert not (tmp_path / "t/self-guided/figure-6").exists()
    done = sentloom("lab", "reproduce", "self-guided", *tiny, "--row", "max, layer 99")
    assert done.returncode == 2
    assert 'there is no row "max, layer 99"' in done.stderr


def test_rows_whose_parts_are_not_here_are_named(sentloom, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    done = sentloom("lab", "reproduce", "self-guided/figure-6", "-o", tmp_path / "t")
    assert done.returncode == 1, "no row ran"
    assert done.stderr == ""
    assert "not here: base: sentence-transformers/bert-base-nli-mean-tokens" in " ".join(done.stdout.split())


def test_data_that_is_not_there_and_tables_of_speed_are_refused(sentloom, tmp_path):
    done = sentloom("lab", "reproduce", "bsl/table-1", "-o", tmp_path / "t", "--data", tmp_path / "none")
    assert (done.returncode, "there is no folder" in done.stderr) == (2, True)
    done = sentloom("lab", "reproduce", "self-guided/table-6", "-o", tmp_path / "t")
    assert (done.returncode, "benchmarks.paper_speed" in done.stderr) == (2, True)
    done = sentloom("lab", "reproduce", "docstrings", "-o", tmp_path / "t")
    assert (done.returncode, "sentloom lab train docstrings" in done.stderr) == (2, True)
    assert not (tmp_path / "t").exists()


def test_an_unknown_table_is_told_with_the_nearest(sentloom, tmp_path):
    done = sentloom("lab", "reproduce", "bsl/table-11", "-o", tmp_path / "t")
    assert done.returncode == 2
    assert "bsl/table-1" in done.stderr
    assert not (tmp_path / "t").exists()
