"""The choice among searches: on training rows alone, with weights from others, early stops, costs and advice."""

import json

import numpy as np
import pytest

from sentloom import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.task import Score
from sentloom.fitting.clusters import connecting_keys
from sentloom.fitting.inputs import read_inputs, sources_of
from sentloom.fitting.request import make_request
from sentloom.fitting.split import split_inputs
from sentloom.systems.choose import Choice, Standing, asked_rows, choose, hopeless
from sentloom.systems.costs import Costs
from tests.fitting import small_base


@pytest.fixture
def coded(tmp_path, monkeypatch):
    """Questions and answers that share nothing but a number."""
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    draw = np.random.default_rng(2)
    rows = []
    for number in range(1000, 1300):
        asked, said = (" ".join(draw.choice(words, 4)) for words in (small_base.WORDS, small_base.FORMS))
        rows.append((f"{asked} {number}", f"{said} {number}"))
    return small_base.write_rows(tmp_path / "coded.tsv", "anchor positive", rows)


def silent(line):
    pass


def test_no_test_row_of_a_fit_on_the_same_data_asks_or_chooses(coded):
    asked = asked_rows([str(coded)], silent)
    request = make_request([str(coded)], "m", {})
    (split,), _ = split_inputs(request, read_inputs(sources_of(request), request, silent), (), silent)
    tested = {text for column in ("anchor", "positive") for text in split.test[column]}
    assert len(connecting_keys([split.test])) == len(tested) > 50
    for task in (*asked.tasks, *asked.tuning):
        assert not tested & {*task.searched.queries, *task.searched.documents}
    (asking,), (tuning,) = asked.tasks, asked.tuning
    assert not {*asking.searched.queries} & {*tuning.searched.queries}


def test_words_win_where_only_numbers_say_what_is_right(coded, base, sentloom, tmp_path):
    other = Encoder.load(base)
    other.prompts = {}
    other.save(tmp_path / "other", golden=False)
    done = sentloom("choose", coded, base, tmp_path / "other", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    choice = json.loads((tmp_path / "out" / "choose.json").read_text())
    names = [standing["name"] for standing in choice["standings"]]
    assert set(names) == {str(base), str(tmp_path / "other"), "bm25", f"{base}+bm25", f"{tmp_path / 'other'}+bm25"}
    by_name = {standing["name"]: standing for standing in choice["standings"]}
    assert by_name[str(base)]["stopped"]
    assert by_name["bm25"]["score"] == 100
    assert choice["advised"] in ("bm25", f"{base}+bm25", f"{tmp_path / 'other'}+bm25")
    assert by_name["bm25"]["costs"]["bytes_per_million"] == 0
    assert by_name[str(base)]["costs"]["bytes_per_million"] == 32 * 4 * 10**6
    p50, p95 = by_name[str(base)]["costs"]["latency"]
    assert 0 < p50 <= p95
    assert "is stopped after 100 queries" in done.stdout
    assert choice["advice"] in done.stdout.replace("\n", " ")
    assert (tmp_path / "out" / "choose.png").stat().st_size > 10_000
    assert choice["advice"] in (tmp_path / "out" / "choose.md").read_text()


def test_data_that_cannot_say_what_is_right_is_refused(base, tmp_path, sentloom):
    text = small_base.prose(tmp_path / "raw.txt", 100)
    done = sentloom("choose", text, base, "bm25")
    assert done.returncode == 2
    assert "raw text does not say which search is right" in done.stderr


def test_one_model_alone_is_no_choice_where_nothing_is_searched(base, tmp_path):
    rows = [(sentence, "ab"[number % 2]) for number, sentence in enumerate(small_base.sentences(120, 3))]
    labels = small_base.write_rows(tmp_path / "labels.tsv", "text label", rows)
    with pytest.raises(InputError, match="there is nothing to choose from"):
        choose([str(labels)], [str(base)], silent)
    with pytest.raises(InputError, match="a model is named twice"):
        choose([str(labels)], [str(base), str(base)], silent)


def test_only_what_is_shown_to_be_worse_is_stopped():
    draw = np.random.default_rng(0)
    good = draw.uniform(0.4, 0.9, 80)
    scores = {name: [Score("mean", (good - gap + draw.normal(0, 0.1, 80))[:, None])] for name, gap in
              (("best", 0.0), ("near", 0.01), ("far", 0.3))}  # fmt: skip
    assert hopeless(scores) == ["far"]
    assert hopeless({name: [Score("mean", own[0].items[:10])] for name, own in scores.items()}) == []


def standing(name, score, high, seconds):
    gap = (None, None, None) if high is None else (high - 2, high - 4, high)
    return Standing(name, "vectors", score, score - 1, score + 1, *gap, costs=Costs(latency=(seconds, seconds)))


def test_the_advice_is_the_fastest_of_those_that_may_be_the_best():
    standings = (standing("a", 70, None, 0.2), standing("b", 69, 0.5, 0.1), standing("c", 50, -9, 0.01))
    choice = Choice("ndcg@10", 300, 0.975, 200.0, standings)
    assert choice.advised.name == "b"
    assert choice.advice == "Use b: of the 2 that may be the best it is the fastest; a scores highest."
    alone = Choice("ndcg@10", 300, 0.975, 200.0, (standings[0], standings[2]))
    assert alone.advice == "Use a: every other one is shown to be worse."
    assert "too few" in Choice("ndcg@10", 9, 0.975, 9.0, standings).advice


def test_labels_and_headings_of_documents_can_choose_too(base, tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    other = Encoder.load(base)
    other.tokens.max_length = 4
    other.save(tmp_path / "other", golden=False)
    models = [str(base), str(tmp_path / "other")]
    rows = [(sentence, sentence.split()[0]) for sentence in small_base.sentences(300, 3)]
    labels = small_base.write_rows(tmp_path / "labels.tsv", "text label", [(text, word[:1]) for text, word in rows])
    choice = choose([str(labels)], models, silent)
    assert {standing.name for standing in choice.standings} == set(models)  # words alone have no vectors to compare
    assert all(standing.costs.latency is None for standing in choice.standings)
    folder = tmp_path / "docs"
    folder.mkdir()
    texts = iter(small_base.sentences(600, 17))
    for number in range(150):
        title, first, second, more = (next(texts) for _ in range(4))
        body = f"Intro {number}: {small_base.other(title)} {small_base.other(title)}"
        sections = (
            f"## {text}\n\nIt says {small_base.other(text)}, {number} times, {more}.\n" for text in (first, second)
        )
        (folder / f"{number}.md").write_text(f"# {title}\n\n{body}\n\n{''.join(sections)}", "utf-8")
    choice = choose([str(folder)], models, silent)
    assert "bm25" in {standing.name for standing in choice.standings}
    assert choice.rows >= 10
