"""The STS sets: locating, reading and counting them, and their three aggregations against plain loops."""

import gzip
import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sentloom.data.inputs import HUB_NAME
from sentloom.encoder import Encoder
from sentloom.errors import DataError, InputError, MissingPart
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.set_source import SetSource
from sentloom.lab.suites import sts
from sentloom.lab.suites.sts import SETS, STS_PARTS, load
from tests.paths import DATA

REAL = DATA
HEAD = "score\tsentence1\tsentence2\tsubset\n"
SIZES = {"news": 30, "forum": 7, "images": 13}


class Random:
    """An encoder whose vectors depend only on the sentence."""

    def encode(self, texts, role="symmetric", show_progress=False):
        return np.stack([np.random.default_rng(sum(text.encode())).normal(size=16) for text in texts]).astype(
            np.float32
        )

    def fingerprint(self):
        return "random"


def write(folder, name, pairs, head=HEAD):
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{row % 6}\tleft {row}\tright {row}\t{'ab'[row % 2]}\n" for row in range(pairs))
    (folder / name).write_text(head + rows, encoding="utf-8")


def random_rows(seed, words=40):
    """Draw pairs of few sentences, so that sentences repeat, in sub-sets of the given sizes."""
    rng = np.random.default_rng(seed)
    pairs = sum(SIZES.values())
    left, right = ([f"sentence {number}" for number in rng.integers(0, words, pairs)] for _ in range(2))
    subsets = [subset for subset, size in SIZES.items() for _ in range(size)]
    return list(zip((rng.integers(0, 26, pairs) / 5).tolist(), left, right, subsets, strict=True))


def loaded(tmp_path, rows, name="STS12"):
    folder = tmp_path / "sts"
    folder.mkdir()
    (folder / f"{name}.tsv").write_text(HEAD + "".join("\t".join(map(str, row)) + "\n" for row in rows))
    return load(name, SetSource(tmp_path, checked=False))


def slow_scores(rows, correlate):
    cosines = []
    for _, left, right, _ in rows:
        a, b = (vector.astype(float).tolist() for vector in Random().encode([left, right]))
        dot = [math.fsum(x * y for x, y in zip(*pair, strict=True)) for pair in ((a, b), (a, a), (b, b))]
        cosines.append(round(dot[0] / math.sqrt(dot[1] * dot[2]), 10))
    gold = [row[0] for row in rows]
    parts = []
    for subset, size in SIZES.items():
        at = [place for place, row in enumerate(rows) if row[3] == subset]
        parts.append((100 * correlate([cosines[p] for p in at], [gold[p] for p in at]).statistic, size))
    return (
        100 * correlate(cosines, gold).statistic,
        sum(score for score, _ in parts) / 3,
        sum(score * size for score, size in parts) / 50,
    )


@pytest.mark.parametrize("seed", range(3))
def test_three_aggregations_equal_plain_loops(tmp_path, seed):
    rows = random_rows(seed)
    (scores,) = score_tasks(Random(), [loaded(tmp_path, rows)])
    for metric, correlate in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        got = [scores[name].value for name in (metric, f"{metric}-mean", f"{metric}-wmean")]
        assert got == pytest.approx(slow_scores(rows, correlate), abs=1e-6)


def test_without_subsets_there_is_no_mean_over_subsets(tmp_path):
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts/STS13.tsv").write_text("score\tsentence1\tsentence2\n1\ta\tb\n2\tc\td\n")
    (scores,) = score_tasks(Random(), [load("STS13", SetSource(tmp_path, checked=False))])
    assert set(scores) == {"spearman", "pearson"}


def test_a_set_scored_whole_has_three_equal_aggregations(tmp_path):
    write(tmp_path / "sts", "STSB.test.tsv", 40)
    (scores,) = score_tasks(Random(), [load("STS-B", SetSource(tmp_path, checked=False))])
    assert scores["spearman-mean"].value == scores["spearman-wmean"].value == scores["spearman"].value


def test_other_content_with_the_published_count_is_noted(tmp_path):
    write(tmp_path / "sts", "STS12.tsv", 3108)
    task = load("STS12", SetSource(tmp_path))
    assert (task.name, task.main, len(task.sha256)) == ("STS12", "spearman", 64)
    (note,) = task.notes
    assert "the content differs" in note
    assert task.source.endswith("STS12.tsv")


def test_another_count_is_refused_or_noted(tmp_path):
    write(tmp_path / "sts", "STS13.tsv", 10)
    with pytest.raises(InputError, match="1,500 rows, as published"):
        load("STS13", SetSource(tmp_path))
    (note,) = load("STS13", SetSource(tmp_path, checked=False)).notes
    assert note.startswith("10 rows, but 1,500 rows are published")


@pytest.mark.parametrize("name", ["SICKR.test.tsv", "SICK-R.test.tsv", "SICK.test.tsv", "SICKR.tsv", "SICK-R.tsv"])
def test_sick_is_found_under_all_common_names(tmp_path, name):
    write(tmp_path / "sts", name, 4927)
    assert load("SICK-R", SetSource(tmp_path)).notes == ()


def test_gzipped_and_without_the_inner_folder(tmp_path):
    write(tmp_path, "STS16.tsv", 1186)
    (tmp_path / "STS16.tsv.gz").write_bytes(gzip.compress((tmp_path / "STS16.tsv").read_bytes()))
    (tmp_path / "STS16.tsv").unlink()
    assert load("STS16", SetSource(tmp_path)).notes == ()


def test_a_swapped_column_is_refused(tmp_path):
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts/STS13.tsv").write_text(HEAD + "left\t3.0\tright\ta\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        load("STS13", SetSource(tmp_path, checked=False))


@pytest.mark.parametrize("name", STS_PARTS)
def test_hub_names_are_pinned(name):
    repository, _, revision, split = HUB_NAME.fullmatch(STS_PARTS[name].hub).groups()
    assert repository.startswith("mteb/")
    assert len(revision) == 40
    assert split in ("test", "validation")


def test_the_suite_is_the_seven_sets_of_the_papers():
    assert [STS_PARTS[name].rows for name in SETS] == [3108, 1500, 3750, 3000, 1186, 1379, 4927]


def test_the_hub_copy_of_sick_has_a_note(tmp_path, monkeypatch):
    file = tmp_path / "copy.jsonl"
    rows = ({"sentence1": f"left {row}", "sentence2": f"right {row}", "score": row % 5} for row in range(9927))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setitem(sts.STS_PARTS, "SICK-R", replace(STS_PARTS["SICK-R"], hub=str(file)))
    (note,) = load("SICK-R", SetSource(None)).notes
    assert "9,927 pairs, but 4,927 are published (the hub's copy joins" in note


def test_a_set_is_found_in_sentevals_own_folder(tmp_path):
    folder = tmp_path / "downstream/STS/STS13-en-test"
    folder.mkdir(parents=True)
    (tmp_path / "downstream/STS/STSBenchmark").mkdir()  # identifies the folder
    for subset in ("FNWN", "headlines", "OnWN"):
        (folder / f"STS.input.{subset}.txt").write_text("a cat\ta dog\na bird\ta fish\nno gold\tfor this\n")
        (folder / f"STS.gs.{subset}.txt").write_text("3.5\n1\n\n")
    (scores,) = score_tasks(Random(), [load("STS13", SetSource(tmp_path, checked=False))])
    assert Counter(scores["spearman-mean"].groups.tolist()) == {0: 2, 1: 2, 2: 2}


def test_a_missing_file_is_a_missing_part(tmp_path):
    with pytest.raises(MissingPart, match=r"sts/STS12\.tsv"):
        load("STS12", SetSource(tmp_path))


SUBSETS = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS14": {"deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "OnWN": 750, "tweet-news": 750},
    "STS15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
}


@pytest.mark.skipif(not (REAL / "sts/STS12.tsv").is_file(), reason="the STS sets are not beside the repository")
@pytest.mark.parametrize("name", SUBSETS)
def test_real_files_have_the_published_counts(name):
    (scores,) = score_tasks(Random(), [load(name, SetSource(REAL))])
    assert sorted(Counter(scores["spearman-mean"].groups.tolist()).values()) == sorted(SUBSETS[name].values())


@pytest.mark.skipif(not (REAL / "sts/STSB.test.tsv").is_file(), reason="the STS sets are not beside the repository")
@pytest.mark.long
@pytest.mark.parametrize(("name", "published"), [("STS-B", 82.03), ("STS13", 80.60)])
def test_the_embedded_encoder_has_its_published_score(name, published):
    task = load(name, SetSource(REAL))
    assert task.notes == ()
    (scores,) = score_tasks(Encoder.load("embedded"), [task])
    assert scores["spearman"].value == pytest.approx(published, abs=0.05)
