"""The bench: every sentence is encoded once, scores are cached, and baselines are fitted on each task separately."""

import numpy as np
import pytest

from sentloom.encoder.tokens import Prompt
from sentloom.errors import InputError, ModelError
from sentloom.evaluation.bench import Memory, score_tasks
from sentloom.evaluation.task import Score, Task, TaskSettings
from sentloom.search.vectors import VectorCache


class Counting:
    """A model whose vectors depend on text and role; it records the texts it encodes."""

    def __init__(self, name="counting"):
        self.name, self.asked = name, []

    def encode(self, texts, role="symmetric", show_progress=False):
        self.asked += [(role, text) for text in texts]
        return np.array([[len(text), len(role), sum(text.encode()) % 97] for text in texts], np.float32)

    def fingerprint(self):
        return self.name


def task(name, texts, settings=None):
    """A task that scores the mean of the first components, so that a wrong row is detected."""

    def score(lookup):
        parts = [lookup(some, role) for role, some in texts.items()]
        return {"first": Score("mean", np.concatenate(parts)[:, :1].astype(np.float64))}

    return Task(name, "first", texts, score, sha256=name, settings=TaskSettings(others=settings or {}))


def memory(folder):
    return Memory(VectorCache(folder / "vectors"), folder / "scores")


TASKS = [
    task("a", {"symmetric": ["one", "three", "one"]}),
    task("b", {"symmetric": ["three", "seven"], "query": ["one"]}),
]


def test_each_sentence_is_encoded_once_per_role_over_all_tasks():
    model = Counting()
    a, b = score_tasks(model, TASKS)
    assert sorted(model.asked) == [
        ("query", "one"),
        ("symmetric", "one"),
        ("symmetric", "seven"),
        ("symmetric", "three"),
    ]
    assert a["first"].value == pytest.approx(100 * (3 + 5 + 3) / 3)
    assert b["first"].value == pytest.approx(100 * (5 + 5 + 3) / 3)


def test_cached_scores_are_not_computed_again(tmp_path):
    before = score_tasks(Counting(), TASKS, memory(tmp_path))
    model = Counting()
    after = score_tasks(model, TASKS, memory(tmp_path))
    assert model.asked == []
    assert [one["first"].value for one in after] == [one["first"].value for one in before]


def test_an_interrupted_suite_resumes(tmp_path):
    def dies(lookup):
        raise KeyboardInterrupt

    broken = Task("c", "first", {"symmetric": ["eleven"]}, dies, sha256="c")
    with pytest.raises(KeyboardInterrupt):
        score_tasks(Counting(), [TASKS[0], broken, TASKS[1]], memory(tmp_path))
    model = Counting()
    mended = task("c", {"symmetric": ["eleven"]})
    _, c, _ = score_tasks(model, [TASKS[0], mended, TASKS[1]], memory(tmp_path))
    assert model.asked == []  # all vectors were cached before the failure
    assert c["first"].value == 600


@pytest.mark.parametrize("changed", ["model", "settings", "data"])
def test_cached_scores_depend_on_model_content_and_protocol(tmp_path, changed):
    score_tasks(Counting(), TASKS[:1], memory(tmp_path))
    model = Counting("other" if changed == "model" else "counting")
    other = task("z" if changed == "data" else "a", TASKS[0].texts, {"folds": 5} if changed == "settings" else None)
    calls = []
    score_tasks(
        model, [Task(**{**vars(other), "score": lambda look: calls.append(1) or other.score(look)})], memory(tmp_path)
    )
    assert calls == [1]


def test_baselines_are_fitted_on_each_task_separately():
    class Fitted(Counting):
        seen = []  # noqa: RUF012

        def fit(self, texts):
            self.seen.append(texts)
            return Counting()

    score_tasks(Fitted(), TASKS)
    assert Fitted.seen == [["one", "three"], ["three", "seven", "one"]]


def test_broken_vectors_are_refused():
    class Broken(Counting):
        def encode(self, texts, role="symmetric", show_progress=False):
            return np.full((len(texts), 3), np.nan, np.float32)

    with pytest.raises(ModelError, match="NaN"):
        score_tasks(Broken(), TASKS)


def test_an_unwritable_cache_folder_only_adds_a_note(tmp_path):
    (tmp_path / "file").write_text("")
    nowhere = memory(tmp_path / "file")
    found = score_tasks(Counting(), TASKS, nowhere)
    assert [one["first"].value for one in found] == [one["first"].value for one in score_tasks(Counting(), TASKS)]
    assert "scores are not cached" in nowhere.note


def test_roles_with_the_same_prompt_share_their_vectors(tmp_path):
    model = Counting()
    model.prompts = {"query": Prompt("query: ")}
    tasks = [*TASKS, task("c", {"document": ["one", "nine"]})]
    c = score_tasks(model, tasks, memory(tmp_path))[2]
    assert sorted(model.asked) == [
        ("query", "one"),
        *(("symmetric", text) for text in ("nine", "one", "seven", "three")),
    ]
    assert c["first"].value == pytest.approx(100 * (3 + 4) / 2)


def test_an_error_names_its_set():
    def refuses(lookup):
        raise InputError("folds", "there are only 9 rows", "10", "give more rows")

    with pytest.raises(InputError, match=r"^c, folds: there are only 9 rows"):
        score_tasks(Counting(), [Task("c", "first", {"symmetric": ["one"]}, refuses)])
