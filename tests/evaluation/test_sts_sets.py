"""Finding, reading and counting the STS sets."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from sentloom.data.inputs import HUB_NAME
from sentloom.errors import DataError, InputError, MissingPart
from sentloom.evaluation import sts_sets
from sentloom.evaluation.sts_sets import KNOWN, SUITE, load_set, load_suite

REAL = Path(__file__).parents[3] / "shared" / "data"
HEAD = "score\tsentence1\tsentence2\tsubset\n"


def write(folder, name, pairs, head=HEAD):
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{row % 6}\tleft {row}\tright {row}\t{'ab'[row % 2]}\n" for row in range(pairs))
    (folder / name).write_text(head + rows, encoding="utf-8")


def test_a_set_is_read_with_its_subsets(tmp_path):
    write(tmp_path / "sts", "STS12.tsv", 3108)
    one = load_set("sts12", tmp_path)
    assert (one.name, len(one.gold), one.notes) == ("STS12", 3108, ())
    assert (one.sentences1[7], one.sentences2[7], one.gold[7], one.subsets[7]) == ("left 7", "right 7", 1.0, "b")
    assert one.source.endswith("STS12.tsv")
    assert len(one.sha256) == 64


def test_another_count_than_the_published_one_is_noted(tmp_path):
    write(tmp_path / "sts", "STS13.tsv", 10)
    (note,) = load_set("STS13", tmp_path).notes
    assert note == "10 pairs where 1500 are published: not comparable with published scores"


@pytest.mark.parametrize("name", ["SICKR.test.tsv", "SICK-R.test.tsv", "SICK.test.tsv", "SICKR.tsv", "SICK-R.tsv"])
def test_sick_is_found_under_any_usual_name(tmp_path, name):
    write(tmp_path / "sts", name, 4927)
    assert load_set("SICK-R", tmp_path).notes == ()


def test_gzipped_and_without_the_inner_folder(tmp_path):
    write(tmp_path, "STS16.tsv", 1186)
    (tmp_path / "STS16.tsv.gz").write_bytes(gzip.compress((tmp_path / "STS16.tsv").read_bytes()))
    (tmp_path / "STS16.tsv").unlink()
    assert len(load_set("STS16", tmp_path).gold) == 1186


def test_stsb_and_sick_are_whole_whatever_their_genres(tmp_path):
    write(tmp_path / "sts", "STSB.test.tsv", 1379)
    write(tmp_path / "sts", "STSB.dev.tsv", 1500)
    assert set(load_set("STS-B", tmp_path).subsets) == {"STS-B"}
    assert set(load_set("sts-b/dev", tmp_path).subsets) == {"STS-B/dev"}


def test_missing_sets_are_named_in_order(tmp_path):
    write(tmp_path / "sts", "STS14.tsv", 4)
    write(tmp_path / "sts", "STSB.test.tsv", 4)
    suite = load_suite(tmp_path)
    assert [one.name for one in suite.sets] == ["STS14", "STS-B"]
    assert suite.missing == ("STS12", "STS13", "STS15", "STS16", "SICK-R")


def test_it_is_an_error_if_all_are_missing(tmp_path):
    with pytest.raises(MissingPart, match="sts"):
        load_suite(tmp_path)


def test_a_damaged_file_is_an_error_and_not_a_missing_set(tmp_path):
    write(tmp_path / "sts", "STS12.tsv", 4)
    (tmp_path / "sts" / "STS13.tsv").write_text(HEAD + "high\tleft\tright\ta\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        load_suite(tmp_path)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="STS12, STS13"):
        load_set("STS11", None)


def test_the_suite_is_the_seven_sets_of_the_papers():
    assert [KNOWN[name].pairs for name in SUITE] == [3108, 1500, 3750, 3000, 1186, 1379, 4927]


@pytest.mark.parametrize("name", KNOWN)
def test_hub_names_are_pinned(name):
    repository, _, revision, split = HUB_NAME.fullmatch(KNOWN[name].hub).groups()
    assert repository.startswith("mteb/")
    assert len(revision) == 40
    assert split in ("test", "validation")


def hub_form(tmp_path, monkeypatch, name, pairs):
    """A set in the columns of the hub's copies, which have no sub-sets."""
    file = tmp_path / "copy.jsonl"
    rows = ({"sentence1": f"left {row}", "sentence2": f"right {row}", "score": row % 5} for row in range(pairs))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setitem(sts_sets.KNOWN, name, replace(KNOWN[name], hub=str(file)))


def test_the_hub_form_has_no_subsets(tmp_path, monkeypatch):
    hub_form(tmp_path, monkeypatch, "STS15", 3000)
    one = load_set("STS15", None)
    assert one.subsets is None
    assert one.notes == ()


def test_the_hub_copy_of_sick_says_what_it_is(tmp_path, monkeypatch):
    hub_form(tmp_path, monkeypatch, "SICK-R", 9927)
    one = load_set("SICK-R", None)
    assert set(one.subsets) == {"SICK-R"}
    assert "9927 pairs where 4927 are published (the hub's copy joins" in one.notes[0]


def test_without_the_hub_the_sets_are_missing_parts(tmp_path):
    code = (
        "from sentloom.evaluation.sts_sets import load_suite\n"
        "from sentloom.errors import MissingPart\n"
        "try: load_suite(None, ['STS12', 'STS-B'])\n"
        "except MissingPart as error: print(error.where)"
    )
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=offline, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "STS-B"


SUBSETS = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS14": {"deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "OnWN": 750, "tweet-news": 750},
    "STS15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
}


@pytest.mark.skipif(not (REAL / "sts").is_dir(), reason="the shared data folder is not here")
def test_real_files_have_the_published_counts():
    suite = load_suite(REAL, [*SUITE, "STS-B/dev"])
    assert not any(one.notes for one in suite.sets)
    assert {one.name for one in suite.sets} | set(suite.missing) == {*SUITE, "STS-B/dev"}
    found = {one.name: one for one in suite.sets}
    for name in SUBSETS.keys() & found.keys():
        assert Counter(found[name].subsets) == SUBSETS[name]
