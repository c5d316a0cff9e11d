"""Special domains as in USEB, against hand-computed values, plain loops and the layouts of the hub."""

import re

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from sentloom.data.inputs import HUB_NAME
from sentloom.errors import DataError, InputError, MissingPart
from sentloom.evaluation.set_source import SetSource
from sentloom.lab.suites.domain import (
    ASKUBUNTU,
    DOMAIN,
    FORUMS,
    PIT,
    TWITTER_URL,
    cqadupstack,
    load,
    trec_precision,
    useb_precision,
)
from tests.evaluation.by_hand import all_alike, any_vectors, at_angles, scored, values, write

FAN = {"a": 0, "b": 10, "c": 20, "d": 30, "e": 40, "f": 50}


def test_askubuntu_against_hand_computed_values(tmp_path):
    # Question a: b wrong, c and d correct: AP (1/2 + 2/3) / 2 = 7/12. Question f has no correct candidate.
    write(
        tmp_path / "domain" / "AskUbuntu.test.tsv",
        ("query", "document", "label"),
        *(("a", "d", 1), ("a", "c", 1), ("a", "b", 0), ("f", "e", 0)),
    )
    task = load("AskUbuntu", SetSource(tmp_path))
    assert values(task, at_angles(**FAN)) == pytest.approx({"map": 700 / 12, "mrr": 50})
    assert task.main == "map"
    assert task.notes == ("1 questions without a correct candidate are left out",)


def test_askubuntu_in_the_layout_of_the_hub(hub):
    hub(
        "mteb/AskUbuntuDupQuestions",
        {
            ("queries", "test"): {"id": ["q1", "q2"], "text": ["a", "f"]},
            ("corpus", "test"): {"id": ["1", "2", "3"], "title": ["", "", ""], "text": ["b", "c", "d"]},
            ("top_ranked", "test"): {"query-id": ["q1", "q2"], "corpus-ids": [["3", "1", "2"], ["1", "3"]]},
            ("qrels", "test"): {
                "query-id": ["q1", "q1", "q1", "q2", "q2"],
                "corpus-id": ["1", "2", "3", "1", "3"],
                "score": [0, 1, 1, 1, 0],
            },
        },
    )
    # Question f (50 degrees) has d (wrong) before b (right): AP 1/2.
    task = load("AskUbuntu", SetSource())
    assert values(task, at_angles(**FAN)) == pytest.approx({"map": 100 * (7 / 12 + 1 / 2) / 2, "mrr": 50})
    assert "joins the development and test queries" in task.notes[0]


def forum_files(folder, forum, queries, documents, relevant):
    place = folder / "domain" / "CQADupStack"
    write(place / f"{forum}.queries.tsv", ("id", "text"), *queries)
    write(place / f"{forum}.documents.tsv", ("id", "text"), *documents)
    write(place / f"{forum}.relevant.tsv", ("query", "document"), *relevant)


def two_forums(source):
    return cqadupstack(source, ("android", "gis"))


def test_cqadupstack_is_the_mean_over_forums_not_over_queries(tmp_path):
    # android, a: b right, c wrong, d right: (1 + 2/3) / 2; f: e wrong, d right ...: 1/2. gis, a: c first of two: 1.
    # The query itself, which is also among the documents, does not count.
    forum_files(
        tmp_path,
        "android",
        [("1", "a"), ("2", "f")],
        [("1", "a"), ("3", "b"), ("4", "c"), ("5", "d"), ("6", "e")],
        [("1", "3"), ("1", "5"), ("2", "5")],
    )
    forum_files(tmp_path, "gis", [("7", "a"), ("8", "b")], [("9", "c"), ("10", "d")], [("7", "9")])
    task = two_forums(SetSource(tmp_path))
    android = (5 / 6 + 1 / 2) / 2
    assert values(task, at_angles(**FAN))["map@100"] == pytest.approx(100 * (android + 1) / 2)
    assert task.score(at_angles(**FAN))["map@100"].groups.tolist() == [0, 0, 1]
    assert "b" not in task.texts["symmetric"][-3:]  # a query without a relevant document is not used


def test_map_at_100_equals_scikit_learn_on_the_first_hundred(tmp_path):
    rng = np.random.default_rng(0)
    documents = [(f"d{n}", f"document {n}") for n in range(300)]
    queries = [(f"q{n}", f"query {n}") for n in range(8)]
    relevant = {
        query: rng.choice(300, size=size, replace=False) for (query, _), size in zip(queries, range(1, 9), strict=True)
    }
    pairs = [(query, f"d{n}") for query, numbers in relevant.items() for n in numbers]
    forum_files(tmp_path, "android", queries, documents, pairs)
    forum_files(tmp_path, "gis", queries, documents, pairs)
    vectors = any_vectors([text for _, text in documents])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    useb, trec = [], []
    for query, text in queries:
        cosines = vectors @ any_vectors([text])[0]
        best = np.argsort(-cosines)[:100]
        labels = np.isin(best, relevant[query])
        precision = average_precision_score(labels, cosines[best]) if labels.any() else 0.0
        useb.append(precision)
        trec.append(precision * labels.sum() / len(relevant[query]))
    scores = values(two_forums(SetSource(tmp_path)), any_vectors)
    assert scores == pytest.approx({"map@100": 100 * np.mean(useb), "map-cut-100": 100 * np.mean(trec)})
    assert scores["map-cut-100"] < scores["map@100"]


def test_two_definitions_of_average_precision_at_100():
    # Relevant documents at 2, 100 and 101: the sum 1/2 + 2/100, divided by the two inside or by all three.
    ranks = np.array([2, 100, 101])
    assert useb_precision(ranks) == pytest.approx(0.26)
    assert trec_precision(ranks) == pytest.approx(0.52 / 3)
    assert useb_precision(np.array([101])) == trec_precision(np.array([101])) == 0.0


def test_cqadupstack_with_constant_vectors(tmp_path):
    for forum in ("android", "gis"):
        forum_files(tmp_path, forum, [("1", "a")], [("2", "b"), ("3", "c"), ("4", "d"), ("5", "e")], [("1", "3")])
    assert values(two_forums(SetSource(tmp_path)), all_alike)["map@100"] == pytest.approx(25)


def test_cqadupstack_in_the_layout_of_the_hub(hub):
    tables = {
        ("queries", "queries"): {"_id": ["1", "2"], "text": ["a", "f"]},
        ("corpus", "corpus"): {
            "_id": ["3", "4", "5"],
            "title": ["b", "", "d"],
            "text": ["the long text of b", "c", "the long text of d"],
        },
        ("default", "test"): {"query-id": ["1", "2"], "corpus-id": ["4", "5"], "score": [1, 1]},
    }
    for name in ("mteb/CQADupstackAndroidRetrieval", "mteb/cqadupstack-gis"):
        hub(name, tables)
    task = two_forums(SetSource())
    assert values(task, at_angles(**FAN))["map@100"] == pytest.approx(75)  # a: b, then c; f: d first
    assert "the queries of BEIR" in task.notes[0]


@pytest.mark.parametrize(
    ("queries", "documents", "relevant", "said"),
    [
        ([("1", "a")], [("2", "b")], [("1", "9")], "no query '1' or no document '9'"),
        ([("1", "a")], [("2", "b")], [("9", "2")], "no query '9' or no document '2'"),
        ([("1", "a")], [("1", "a"), ("2", "b")], [("1", "1")], "no query '1' or no document '1'"),
        ([("1", "a"), ("1", "c")], [("2", "b")], [("1", "2")], "an id appears twice"),
    ],
)
def test_unknown_and_repeated_ids_are_refused(tmp_path, queries, documents, relevant, said):
    forum_files(tmp_path, "android", queries, documents, relevant)
    with pytest.raises(InputError, match=said):
        two_forums(SetSource(tmp_path))


def test_texts_need_ids(tmp_path):
    forum_files(tmp_path, "android", [("1", "a")], [("2", "b")], [("1", "2")])
    write(tmp_path / "domain" / "CQADupStack" / "android.queries.tsv", ("text",), ("a",))
    with pytest.raises(InputError, match="no column id"):
        two_forums(SetSource(tmp_path))


def test_the_set_is_missing_if_one_forum_is(tmp_path):
    forum_files(tmp_path, "android", [("1", "a")], [("2", "b")], [("1", "2")])
    with pytest.raises(MissingPart, match=r"domain/CQADupStack/gis.queries.tsv"):
        two_forums(SetSource(tmp_path))


def test_votes_of_three_are_dropped_and_higher_ones_are_paraphrases(tmp_path):
    # Ordered by cosine with a: b (6 votes), c (3, dropped), d (2), e (4): right, wrong, right.
    votes = {"b": 6, "c": 3, "d": 2, "e": 4, "f": 0}
    write(
        tmp_path / "domain" / "TwitterURL.test.tsv",
        ("sentence1", "sentence2", "label"),
        *(("a", text, vote) for text, vote in votes.items()),
    )
    task = load("Twitter-URL", SetSource(tmp_path))
    assert values(task, at_angles(**FAN)) == pytest.approx({"average-precision": 100 * (1 + 2 / 3) / 2})
    assert "c" not in task.texts["symmetric"]


def test_labels_of_zero_and_one_are_unchanged(tmp_path):
    write(
        tmp_path / "domain" / "TwitterURL.test.tsv",
        ("sentence1", "sentence2", "label"),
        *(("a", "b", 1), ("a", "c", 0), ("a", "d", 1)),
    )
    scores = values(load("Twitter-URL", SetSource(tmp_path)), at_angles(**FAN))
    assert scores == pytest.approx({"average-precision": 100 * (1 + 2 / 3) / 2})


def test_pit_has_838_decided_pairs(tmp_path):
    head, *_ = scored(0)
    votes = [0] * 663 + [3] * 134 + [5] * 175
    file = tmp_path / "domain" / "PIT2015.test.tsv"
    write(file, head, *((vote, f"left {at}", f"right {at}") for at, vote in enumerate(votes)))
    assert len(load("PIT-2015", SetSource(tmp_path)).score(any_vectors)["average-precision"].items) == 838
    write(file, head, *((vote, f"left {at}", f"right {at}") for at, vote in enumerate(votes[5:])))
    with pytest.raises(InputError, match=r"833 rows\. Expected 838 rows"):
        load("PIT-2015", SetSource(tmp_path))


ROWS = {"sent1": ["a", "a", "a"], "sent2": ["b", "c", "d"], "labels": [1, 0, 1]}


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        {name: [cells] for name, cells in ROWS.items()},
        {"sentence1": ["a"] * 3, "sentence2": list("bcd"), "label": [1, 0, 1]},
    ],
)
def test_both_layouts_of_labelled_pairs_on_the_hub(hub, table):
    hub("mteb/twittersemeval2015-pairclassification", {("default", "test"): table})
    task = load("PIT-2015", SetSource())
    assert values(task, at_angles(**FAN)) == pytest.approx({"average-precision": 100 * (1 + 2 / 3) / 2})
    assert "joins all parts" in task.notes[0]


def test_biosses(tmp_path):
    write(tmp_path / "domain" / "BIOSSES.tsv", *scored(100))
    assert load("BIOSSES", SetSource(tmp_path)).main == "spearman"


@pytest.mark.parametrize("name", DOMAIN.sets)
def test_missing_files_and_an_unavailable_hub(tmp_path, hub, name):
    for origin in (SetSource(tmp_path), SetSource()):
        with pytest.raises(MissingPart, match=f"{name}.*domain/" if origin.folder else f"{name}.*on the hub"):
            load(name, origin)


def test_a_damaged_file_is_not_reported_as_missing(tmp_path):
    write(tmp_path / "domain" / "AskUbuntu.test.tsv", ("query", "document", "label"), ("a", "b", "yes"))
    with pytest.raises(DataError, match="line 2"):
        load("AskUbuntu", SetSource(tmp_path))


def test_the_suite():
    assert len(FORUMS) == 12
    five, four = DOMAIN.averages
    assert five.parts == DOMAIN.sets
    assert four.parts == ("AskUbuntu", "CQADupStack", ("Twitter-URL", "PIT-2015"), "BIOSSES")


def test_hub_names_are_pinned():
    for name in (*FORUMS.values(), ASKUBUNTU.hub, PIT.hub, TWITTER_URL.hub):
        assert re.fullmatch("[0-9a-f]{40}", HUB_NAME.fullmatch(name.format("corpus", "test"))[3])
