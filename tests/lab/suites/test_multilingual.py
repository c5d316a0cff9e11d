"""STS in other languages and translation retrieval."""

import gzip
import re

import numpy as np
import pytest

from sentloom.data.inputs import HUB_NAME
from sentloom.errors import DataError, InputError, MissingPart
from sentloom.evaluation.set_source import Rows, SetSource
from sentloom.evaluation.suites import is_set
from sentloom.lab.suites.multilingual import MULTILINGUAL, PARTS, load, translation_task
from tests.evaluation.by_hand import all_alike, any_vectors, at_angles, scored, values, write
from tests.paths import DATA

REAL = DATA


def test_a_track_is_read_and_scored(tmp_path):
    write(tmp_path / "sts_multi" / "STS17.es-es.tsv", *scored(250))
    task = load("STS17 es-es", SetSource(tmp_path))
    assert (task.name, task.main) == ("STS17 es-es", "spearman")
    assert all("the content differs" in note for note in task.notes)
    assert set(task.score(any_vectors)) == {"spearman", "pearson"}


def test_the_spanish_set_has_two_subsets(tmp_path):
    head, *lines = scored(804)
    rows = [(*line, "news" if at < 480 else "wikipedia") for at, line in enumerate(lines)]
    write(tmp_path / "sts_multi" / "STS14.es.tsv", (*head, "subset"), *rows)
    scores = load("STS14 es", SetSource(tmp_path)).score(any_vectors)
    assert np.bincount(scores["pearson-mean"].groups).tolist() == [480, 324]
    assert scores["pearson-wmean"].weighted


def test_another_number_of_pairs_is_refused_or_noted(tmp_path):
    write(tmp_path / "sts_multi" / "STSB_mt.de.test.tsv", *scored(7))
    with pytest.raises(InputError, match="1,379 rows, as published"):
        load("STS-B de", SetSource(tmp_path))
    (note,) = load("STS-B de", SetSource(tmp_path, checked=False)).notes
    assert "7 rows, but 1,379 rows are published" in note


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MissingPart, match=r"sts_multi/CNSD_STSB.zh.test.tsv"):
        load("CNSD STS-B", SetSource(tmp_path))


def test_a_damaged_file_is_not_reported_as_missing(tmp_path):
    write(tmp_path / "sts_multi" / "STS17.en-en.tsv", ("score", "sentence1", "sentence2"), ("much", "a", "b"))
    with pytest.raises(DataError, match="line 2"):
        load("STS17 en-en", SetSource(tmp_path))


def test_tatoeba_in_both_directions_against_hand_computed_values(tmp_path):
    # English one, two, three at 0, 50 and 90 degrees; German eins, zwei, drei at 4, 85 and 91.
    # To German: eins right; two (50) is nearer to zwei (35) than to eins (46): right; three (90) is nearest to drei: right.
    # To English: eins right; zwei (85) is nearer to three (5) than to two (35): wrong; drei right.
    file = tmp_path / "parallel" / "tatoeba_test.en-de.tsv.gz"
    file.parent.mkdir()
    file.write_bytes(gzip.compress(b"source\ttarget\none\teins\ntwo\tzwei\nthree\tdrei\n"))
    task = load("Tatoeba en-de", SetSource(tmp_path))
    lookup = at_angles(one=0, two=50, three=90, eins=4, zwei=85, drei=91)
    assert values(task, lookup) == pytest.approx(
        {"accuracy-from-english": 100, "accuracy-to-english": 200 / 3, "accuracy": 500 / 6}
    )
    assert task.score(lookup)["accuracy"].items.tolist() == [[1], [0.5], [1]]


def test_a_sentence_with_two_translations_may_find_either():
    rows = Rows({"source": ["hi", "hi", "two"], "target": ["hallo", "servus", "zwei"]}, "")
    scores = values(translation_task("x", rows), at_angles(hi=0, hallo=1, servus=30, two=90, zwei=90))
    assert scores == {"accuracy-to-target": 100, "accuracy-to-source": 100, "accuracy": 100}


def test_constant_vectors_find_no_translation():
    rows = Rows({"source": ["a", "b"], "target": ["c", "d"]}, "")
    assert set(values(translation_task("x", rows), all_alike).values()) == {0.0}


@pytest.mark.parametrize("seed", range(3))
def test_translation_accuracy_equals_a_plain_loop(seed):
    numbers = np.random.default_rng(seed).permutation(30)
    rows = Rows({"source": [f"s {n}" for n in numbers], "target": [f"t {n}" for n in numbers % 20]}, "")
    right = {}
    for source, target in zip(rows["source"], rows["target"], strict=True):
        right.setdefault(source, set()).add(target)
        right.setdefault(target, set()).add(source)
    expected = []
    for queries, documents in ((rows["source"], rows["target"]), (rows["target"], rows["source"])):
        unit = {text: (v := any_vectors([text])[0]) / np.linalg.norm(v) for text in (*queries, *documents)}
        nearest = [max(documents, key=lambda text: float(unit[text] @ unit[query])) for query in queries]
        expected.append(100 * np.mean([row in right[query] for row, query in zip(nearest, queries, strict=True)]))
    scores = values(translation_task("x", rows), any_vectors)
    assert [scores["accuracy-to-target"], scores["accuracy-to-source"]] == pytest.approx(expected)
    assert scores["accuracy"] == pytest.approx(sum(expected) / 2)


def test_the_layouts_of_the_hub(hub):
    pairs = {"sentence1": ["a"] * 250, "sentence2": ["b"] * 250, "score": [1.0] * 250, "lang": ["en-ar"] * 250}
    hub(
        "mteb/sts17-crosslingual-sts",
        {("en-ar", "test"): pairs, ("en-en", "test"): {**pairs, "sentence1": ["c"] * 250}},
    )
    hub(
        "mteb/tatoeba-bitext-mining",
        {("deu-eng", "test"): {"sentence1": ["eins", "zwei"], "sentence2": ["one", "two"], "lang": ["deu-eng"] * 2}},
    )
    assert set(load("STS17 ar-en", SetSource()).texts["symmetric"]) == {"a", "b"}
    tatoeba = load("Tatoeba en-de", SetSource())
    assert tatoeba.notes == ("the hub's copy is the Tatoeba set of LASER, 1,000 pairs",)
    assert values(tatoeba, at_angles(one=0, two=20, eins=90, zwei=9))["accuracy-to-english"] == 0  # eins finds two
    assert values(tatoeba, at_angles(one=0, two=20, eins=90, zwei=9))["accuracy-from-english"] == 50


def test_without_a_copy_on_the_hub_a_set_is_missing(hub):
    with pytest.raises(MissingPart, match="no copy on the hub"):
        load("STS17 es-en-wmt", SetSource())
    with pytest.raises(MissingPart, match="STS17 es-es"):
        load("STS17 es-es", SetSource())


def test_hub_names_are_pinned():
    for name, part in PARTS.items():
        if part.hub:
            _, _, revision, split = HUB_NAME.fullmatch(part.hub).groups()
            assert re.fullmatch("[0-9a-f]{40}", revision)
            assert split == ("validation" if name.endswith("/dev") else "test")


def test_a_dev_part_can_be_selected_on_but_is_in_no_suite(tmp_path):
    assert not any(name.endswith("/dev") for name in MULTILINGUAL.sets)
    assert is_set("CNSD STS-B/dev")


def test_averages_name_sets_that_exist():
    parts = {average.label: average.parts for average in MULTILINGUAL.averages}
    assert set(parts) == {"STS17 mean", "STS17 mean of eight tracks", "STS-B translations mean", "Tatoeba mean"}
    assert {name for names in parts.values() for name in names} <= set(MULTILINGUAL.sets)
    assert len(parts["STS17 mean"]) == 12
    assert len(set(parts["STS17 mean of eight tracks"])) == 8
    assert "STS-B en" not in parts["STS-B translations mean"]


@pytest.mark.skipif(not (REAL / "sts_multi").is_dir(), reason="the shared data folder is not here")
def test_real_files_have_the_published_counts():
    tasks = {}
    for name in MULTILINGUAL.sets:
        try:
            tasks[name] = load(name, SetSource(REAL))
        except MissingPart:
            continue
    assert {"STS17 ar-ar", "STS-B zh", "CNSD STS-B", "Tatoeba en-fr"} <= set(tasks)
    assert not any(task.notes for task in tasks.values())
    assert len(tasks["Tatoeba en-fr"].texts["symmetric"]) == 4000
