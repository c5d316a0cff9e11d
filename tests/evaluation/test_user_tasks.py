"""Tasks from users' files: scores of each shape and kind against hand-computed values and `retrieval`."""

import numpy as np
import pytest

from sentloom.errors import InputError
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.user_tasks import own_task
from sentloom.fitting.clusters import clustered
from tests.evaluation.by_hand import all_alike, any_vectors, at_angles, values, write
from tests.paths import DATA

REAL = DATA
FAN = {"a": 0, "b": 10, "c": 20, "d": 30, "e": 40, "f": 50}


@pytest.fixture
def file(tmp_path):
    def put(*lines):
        write(tmp_path / "own.tsv", *lines)
        return str(tmp_path / "own.tsv")

    return put


def test_scored_pairs_are_correlated(file):
    name = file(("score", "sentence1", "sentence2"), (5, "a", "b"), (3, "a", "c"), (4, "a", "d"))
    task = own_task(None, name, SetSource())
    assert (task.name, task.main, task.source) == (name, "spearman", name)
    assert values(task, at_angles(**FAN))["spearman"] == pytest.approx(50)  # 1 - 6 * 2 / (3 * 8)
    assert values(own_task("pairs", name, SetSource()), at_angles(**FAN))["spearman"] == pytest.approx(50)


def test_pairs_are_scored_by_retrieval(file):
    # Distinct documents b (10), d (30), f (50). a finds b first; c, at 20, ties b and d: its own, d, ranks second;
    # e, at 40, ties d and f, and both are relevant.
    pairs = (("a", "b"), ("c", "d"), ("e", "f"), ("e", "d"), ("a", "b"))
    for kind in (None, "retrieval"):
        task = own_task(kind, file(("question", "answer"), *pairs), SetSource())
        assert values(task, at_angles(**FAN)) == pytest.approx(
            {
                "ndcg@10": 100 * (1 + 1 / np.log2(3) + 1) / 3,
                "mrr@10": 100 * (1 + 0.5 + 1) / 3,
                "recall@1": 100 * (1 + 0 + 0.5) / 3,
                "recall@10": 100,
                "recall@100": 100,
                "map": 100 * (1 + 0.5 + 1) / 3,
            }
        )
        assert task.texts == {"query": ["a", "c", "e"], "document": ["b", "d", "f"]}
    assert task.name.startswith("retrieval:")


def test_search_scores_are_those_of_the_ranks(file):
    rng = np.random.default_rng(0)
    pairs = [(f"query {q}", f"document {d}") for q, d in rng.integers(0, 40, (60, 2))]
    found = values(own_task(None, file(("anchor", "positive"), *pairs), SetSource()), any_vectors)
    queries, documents = (list(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
    relevant = [{documents.index(d) for q, d in pairs if q == query} for query in queries]
    ranks = ranks_of(any_vectors(queries), any_vectors(documents), relevant)
    first = [min(found) for found in ranks]
    assert found["mrr@10"] == pytest.approx(100 * np.mean([1 / rank if rank <= 10 else 0 for rank in first]))
    for k in (1, 10):
        expected = 100 * np.mean([(one <= k).mean() for one in ranks])
        assert found[f"recall@{k}"] == pytest.approx(expected)


def test_beyond_rank_ten_nothing_is_found(file):
    # All cosines are equal: the relevant one of 12 documents is the last.
    name = file(("anchor", "positive"), *((f"q {n}", f"d {n}") for n in range(12)))
    found = values(own_task(None, name, SetSource()), all_alike)
    assert {found[name] for name in ("ndcg@10", "mrr@10", "recall@1", "recall@10")} == {0.0}
    assert (found["recall@100"], found["map"]) == (100, pytest.approx(100 / 12))


def test_triplets_against_hand_computed_values(file):
    # b is closer to a than c and d; d is closer to f than c, but not than e; ties count as wrong.
    rows = (("a", "b", "c", "d"), ("f", "d", "c", "e"), ("a", "c", "c", "d"))
    name = file(("anchor", "positive", "negative_1", "negative_2"), *rows)
    task = own_task(None, name, SetSource())
    assert task.score(at_angles(**FAN))["accuracy"].items.tolist() == [[1], [0], [0]]
    assert task.texts["query"] == ["a", "f", "a"]


def test_triplets_can_be_searched_with_their_negatives_among_the_documents(file):
    name = file(("anchor", "positive", "negative"), ("a", "c", "b"), ("f", "e", "b"))
    task = own_task("retrieval", name, SetSource())
    assert task.texts["document"] == ["c", "e", "b"]
    assert values(task, at_angles(**FAN))["mrr@10"] == pytest.approx(75)  # a: b before c; f: e first


def test_more_documents_can_be_searched(file):
    name = file(("question", "answer"), ("a", "c"), ("f", "e"))
    task = own_task(None, name, SetSource(corpus=("b", "c")))
    assert task.texts["document"] == ["c", "e", "b"]
    assert values(task, at_angles(**FAN))["mrr@10"] == pytest.approx(75)  # a: b before c; f: e first


def test_questions_of_labelled_candidates_have_the_clusters_of_their_rows(file):
    """Two questions share each right answer: 60 questions, 30 clusters of at most 5% of the rows."""
    names = [str(10**8 + 7919**2 * n) for n in range(150)]
    rows = []
    for n in range(30):
        for question in names[2 * n : 2 * n + 2]:
            rows += [(question, names[60 + n], 1), (question, names[90 + n], 0)]
    task = own_task("retrieval", file(("question", "answer", "label"), *rows), SetSource(clustered=clustered))
    found = task.score(any_vectors)["map"].clusters
    assert len(found) == 60
    assert (found[::2] == found[1::2]).all()
    assert len(set(found.tolist())) == 30


def test_lists_of_negatives_of_any_length(tmp_path):
    file = tmp_path / "own.jsonl"
    file.write_text(
        '{"anchor": "a", "positive": "c", "negatives": ["d"]}\n'
        '{"anchor": "a", "positive": "c", "negatives": ["d", "b", "e"]}\n'
        '{"anchor": "f", "positive": "e", "negatives": ["b", "c"]}\n'
    )
    found = own_task(None, str(file), SetSource()).score(at_angles(**FAN))["accuracy"].items
    assert found.tolist() == [[1], [0], [1]]


def test_labelled_pairs_are_scored_by_average_precision(file):
    name = file(("text1", "text2", "label"), ("a", "b", 1), ("a", "c", 0), ("a", "d", 1))
    assert values(own_task("pairs", name, SetSource()), at_angles(**FAN)) == pytest.approx(
        {"average-precision": 250 / 3}
    )
    assert own_task(None, name, SetSource()).main == "spearman"


def test_labelled_questions_and_answers_are_ranked(file):
    # Two questions with the same text are distinguished by number: 1 has b wrong, c correct; 2 has d correct.
    rows = ((1, 0, "a", "b"), (1, 1, "a", "c"), (2, 1, "a", "d"))
    task = own_task("retrieval", file(("qid", "label", "question", "answer"), *rows), SetSource())
    assert values(task, at_angles(**FAN)) == pytest.approx({"map": 75, "mrr": 75})
    assert set(task.texts) == {"query", "document"}
    by_text = own_task("retrieval", file(("label", "question", "answer"), *(row[1:] for row in rows)), SetSource())
    assert values(by_text, at_angles(**FAN)) == pytest.approx({"map": 100 * (1 / 2 + 2 / 3) / 2, "mrr": 50})


def test_scores_other_than_0_and_1_are_grades_of_documents(file):
    # a (0) ranks b (10), c (20), d (30): grades 1, 0, 3. The best order would be d, b.
    name = file(("query", "document", "relevance"), ("a", "b", 1), ("a", "c", 0), ("a", "d", 3))
    found = values(own_task("retrieval", name, SetSource()), at_angles(**FAN))
    assert found["ndcg@10"] == pytest.approx(100 * (1 + 3 / 2) / (3 + 1 / np.log2(3)))
    assert found["map"] == pytest.approx(100 * (1 + 2 / 3) / 2)


def test_parallel_sentences_are_scored_by_translation_retrieval(file):
    name = file(("source", "target"), ("a", "b"), ("f", "e"), ("c", "d"))
    # b (10) lies between a (0) and c (20): a tie is not found. d (30) is closer to c (20) than to f (50).
    assert values(own_task(None, name, SetSource()), at_angles(**FAN)) == pytest.approx(
        {"accuracy-to-target": 200 / 3, "accuracy-to-source": 200 / 3, "accuracy": 200 / 3}
    )


def test_classes_are_probed(file):
    probes = pytest.importorskip("sentloom.evaluation.probes.protocols")
    rows = [(f"text {n}", "yes" if n % 3 else "no") for n in range(60)]

    def lookup(texts, role="symmetric"):
        """Encode the class as the sign of the first component, so that any linear model finds it."""
        signs = np.array([1.0 if int(text.split()[1]) % 3 else -1.0 for text in texts])
        return np.column_stack([signs, any_vectors(texts)[:, :3] / 10]).astype(np.float32)

    for kind in (None, "classification"):
        task = own_task(kind, file(("text", "label"), *rows), SetSource(probe={"preset": "fast"}))
        assert values(task, lookup) == {"accuracy": 100.0}
    assert task.settings.probe["preset"] == probes.Probe(preset="fast").preset


def test_a_single_class_is_refused(file):
    pytest.importorskip("sentloom.evaluation.probes.protocols")
    with pytest.raises(InputError, match="the only label is 'x'"):
        own_task(None, file(("text", "label"), ("a", "x"), ("b", "x")), SetSource())


@pytest.mark.parametrize(
    ("kind", "lines", "said"),
    [
        (
            None,
            [("premise", "hypothesis", "label"), ("a", "b", "neutral")],
            "nli cannot be scored. Expected pairs or triplets or",
        ),
        (None, [("text",), ("a",)], "texts cannot be scored"),
        ("retrieval", [("text", "label"), ("a", "x")], "as retrieval. Expected pairs or triplets or scored-pairs"),
        ("pairs", [("anchor", "positive"), ("a", "b")], "pairs cannot be scored as pairs. Expected scored-pairs"),
        ("classification", [("anchor", "positive"), ("a", "b")], "as classification. Expected classification"),
        ("retrieval", [("text1", "text2", "score"), ("a", "b", -1), ("a", "c", -3)], "no pair has a score above 0"),
        ("retrieval", [("text1", "text2", "label"), ("a", "b", 0), ("a", "c", 0)], r"the labels are 0\."),
    ],
)
def test_files_of_the_wrong_shape_are_refused(file, kind, lines, said):
    with pytest.raises(InputError, match=said):
        own_task(kind, file(*lines), SetSource())


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        own_task("retrieval", str(tmp_path / "none.tsv"), SetSource())


def test_settings_differ_between_two_kinds_of_the_same_file(file):
    name = file(("text1", "text2", "label"), ("a", "b", 1), ("a", "c", 0))
    tasks = [own_task(kind, name, SetSource()) for kind in (None, "pairs", "retrieval")]
    assert len({str(task.settings) for task in tasks}) == 3


def test_the_embedded_pairs_can_be_searched():
    task = own_task(None, "embedded/pairs:typer", SetSource())
    assert task.main == "ndcg@10"
    assert 0 <= values(task, any_vectors)["mrr@10"] < 20


@pytest.mark.skipif(not (REAL / "qa").is_dir(), reason="the shared data folder is not here")
def test_real_questions_and_answers():
    task = own_task("retrieval", str(REAL / "qa" / "WikiQA.test.tsv"), SetSource())
    assert len(task.texts["query"]) == 2351
    assert 0 < values(task, any_vectors)["map"] < 60
