"""Cross-validation: folds that share nothing, scores over all of them, and a whole fit on 80 pairs."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sentloom import fit
from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.engine.runner import PlanResult
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score
from sentloom.fitting.bases import Resources, WriterResource
from sentloom.fitting.clusters import find_clusters, rows_of
from sentloom.fitting.lengths import Extent, Round
from sentloom.fitting.plan import FitPlan, Job, read_plan
from sentloom.fitting.prepare import (
    FOLDS,
    Fold,
    fold_numbers,
    fold_scores,
    make_folds,
    per_training,
    pooled,
    prepare_inputs,
)
from sentloom.fitting.race import Race, race
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import find_routes
from sentloom.fitting.split import split_all
from tests.fitting import small_base
from tests.fitting.small_job import job_in, still
from tests.fitting.test_race import Machine
from tests.fitting.test_request import request
from tests.small_data import build_dataset


def splits_of(*datas):
    rows = [rows_of(str(number), data) for number, data in enumerate(datas)]
    return split_all(rows, find_clusters(rows))


def pairs(count, kind=""):
    texts = small_base.sentences(count, 1)
    return [(f"{kind}{sentence}", f"{kind}{small_base.other(sentence)}") for sentence in texts]


def test_every_training_row_is_in_one_fold_and_no_cluster_in_two():
    rows = pairs(80)
    rows += [(f"once more {question}", answer) for question, answer in rows[:10]]  # ten clusters of two rows
    splits = splits_of(build_dataset(Shape.PAIRS, rows))
    (numbers,) = fold_numbers(splits)
    assert Counter(numbers.tolist()).keys() == set(range(FOLDS))
    by_cluster = {cluster: set(numbers[splits[0].clusters == cluster]) for cluster in splits[0].clusters.tolist()}
    assert all(len(folds) == 1 for folds in by_cluster.values())
    sizes = Counter(fold for (fold,) in by_cluster.values())
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_folds_of_several_inputs_share_no_text(tmp_path):
    """The second file answers the questions of the first one in other words."""
    first = pairs(70)
    second = [(question, f"in other words {answer}") for question, answer in first]
    splits = splits_of(build_dataset(Shape.PAIRS, first), build_dataset(Shape.PAIRS, second))
    assert not any(len(split.validation) for split in splits)
    folds = make_folds(splits, lambda rows: rows, tmp_path)
    for fold in folds:
        asked = {text for split in fold.splits for _, _, text in split.validation.sentences()}
        for split, file in zip(fold.splits, fold.files.values(), strict=True):
            kept = {text for _, _, text in read(file).sentences()}
            assert kept == {text for _, _, text in split.train.sentences()}
            assert kept
            assert kept.isdisjoint(asked)
    asked = Counter(text for fold in folds for text in fold.splits[0].validation["anchor"])
    assert asked == Counter(splits[0].train["anchor"])


def test_texts_under_titles_are_left_out_of_a_fold_too(tmp_path):
    """Documents with titles are pairs to learn from, and raw text as well: two files."""
    rows = [(f"title {n}", text) for n, text in enumerate(small_base.sentences(80, 1))]
    data = replace(build_dataset(Shape.PAIRS, rows), used={"anchor": "title", "positive": "text"})
    for fold in make_folds(splits_of(data), lambda rows: rows, tmp_path):
        assert [Path(file).name for file in fold.files] == ["1-pairs-train.parquet", "1-texts-train.parquet"]
        asked = set(fold.splits[0].validation["positive"])
        for file in fold.files.values():
            kept = {text for _, _, text in read(file).sentences()}
            assert kept
            assert kept.isdisjoint(asked)


def test_a_mean_over_folds_is_the_mean_over_items():
    first, other = (Score("mean", np.array(values)[:, None], clusters=np.array(numbers)) for values, numbers in (
        ([0.0, 1.0, 1.0], [7, 7, 8]), ([0.5], [9])))  # fmt: skip
    score = pooled([first, other])
    assert score.value == pytest.approx(62.5)
    assert score.clusters.tolist() == [7, 7, 8, 9]


def test_a_correlation_is_computed_within_folds():
    """Cosines of two models are not on one scale: each fold is in order, but all together are not."""
    gold = np.arange(6.0)
    folds = [Score("spearman", np.stack([gold + shift, gold + at], axis=1), clusters=np.arange(6) + 10 * at)
             for at, shift in ((0, 100.0), (1, 0.0))]  # fmt: skip
    assert pooled(folds).value == pytest.approx(100)
    worse = Score("spearman", np.stack([-gold, gold], axis=1), clusters=folds[0].clusters)
    assert pooled([worse, folds[1]]).value == pytest.approx(0)
    assert compare_averages([pooled(folds)], [pooled([worse, folds[1]])]).difference == pytest.approx(100)


def test_a_fold_is_neither_shown_to_a_writer_nor_searched():
    fold = Fold((), {"raw.parquet": "fold-1/raw.parquet", "faq.parquet": "fold-1/faq.parquet"})
    written = stage("synthesize", name="w", model="smollm2", data="raw.parquet", shots="faq.parquet", kinds=["query"])
    mined = stage("mine", name="m", model="embedded", data="stage:w", corpus=["raw.parquet"])
    synthesize, mine = fold.without(Plan("queries", "embedded", (written, mined)), 1).stages
    assert (synthesize.data, synthesize.options.shots, synthesize.model) == (
        ("fold-1/raw.parquet",),
        "fold-1/faq.parquet",
        "smollm2",
    )
    assert (mine.data, mine.options.corpus) == (("stage:w",), ("fold-1/raw.parquet",))


def test_a_budget_is_shared_by_all_trainings_of_a_run():
    assert per_training(Budget(600, None), [None] * 4) == Budget(120, None)
    assert per_training(Budget(None, 400), [None] * 4) == Budget(None, 80)
    assert per_training(Budget(None, 3), [None] * 4) == Budget(None, 1)


def test_a_run_is_scored_by_the_models_that_have_not_seen_a_fold(base, tmp_path):
    """Training is replaced: each model is the base itself, so that the score of a run must be the base's own."""
    data, seen = small_base.pairs(tmp_path / "faq.tsv", 80), []
    prepared = prepare_inputs(
        request(data=(str(data),), output=tmp_path / "model"), [Encoder.load(base)], lambda line: None
    )

    class Untrained(Job):
        def run(self, plan, seconds, log):
            """The base itself."""
            seen.append(len(read(*plan.stages[0].data)))
            return PlanResult(plan.name, 1, base, "", {}, "", {}, {}, ({"seconds": 2.0},))

    route = main_route(prepared)
    plan = FitPlan({}, (route,), (), {"pairs": Extent((10,), (2,))}, (Round({"pairs": (10,)}, 1, 0),))
    job, folds = job_in(tmp_path, plan, kind=Untrained), prepared.folds
    before = fold_scores([Encoder.load(base)] * 4, folds, job.memory)
    (run,) = race(Race(job, str(base), 1, prepared.choosing, before, lambda line: None, folds))
    assert seen[0] == 55
    assert sorted(seen[1:]) == [41, 41, 41, 42]
    assert run.run.difference == 0
    assert run.run.seconds == pytest.approx(10, abs=0.1)
    assert run.run.score == pytest.approx(before[0].value)
    assert len(before[0].items) == 55


def main_route(prepared):
    """The first route on its training rows."""
    writer = WriterResource("", "", named=False)
    (route, *_), _ = find_routes(prepared.training_sets, Resources("embedded", "mean", 0.1, None, writer))
    return route


def timed_folds(base, folder, plan, seconds, slow):
    """A race of one route whose trainings take a second per step, and `slow` times that after the first one.

    Each trained model is the base. Returns the steps of every training that ended, and the job after it.
    """
    asked = request(data=(str(folder / "faq.tsv"),), output=folder / "model")
    prepared = prepare_inputs(asked, [Encoder.load(base)], lambda line: None)
    ended = []

    class Trained(Machine):
        def run(self, plan, seconds, log):
            """As a machine does, each training by itself."""
            self.pace, self.trunks = slow if ended else 1.0, self.by_data.setdefault(plan.stages[0].data, {})
            result = super().run(plan, seconds, log)
            ended.append(plan.training[0].settings.steps)
            return replace(result, model=base)

    route = main_route(prepared)
    rounds = (Round({"pairs": (9999,)}, 1, 0),)
    plan = plan or FitPlan({}, (route,), (), {"pairs": Extent((9999,), (2,))}, rounds, trainings=5)
    job = job_in(folder, plan, still(seconds), kind=Trained)
    job.by_data = {}
    before = fold_scores([Encoder.load(base)] * 4, prepared.folds, job.memory)
    (run,) = race(Race(job, str(base), 1, prepared.choosing, before, lambda line: None, prepared.folds))
    assert run.run.verdict == "best"
    return ended, job


def test_trainings_share_a_run_and_late_ones_are_shorter_in_a_resumed_fit_too(base, tmp_path):
    """Of 205 s, 5 are for the report, and 40 for each of five trainings."""
    small_base.pairs(tmp_path / "faq.tsv", 80)
    steps, job = timed_folds(base, tmp_path, None, 205.0, slow=1.0)
    assert len(set(steps)) == 1  # all trainings are as long as that on all rows
    assert 38 <= steps[0] <= 40
    slower, job = timed_folds(base, tmp_path, None, 205.0, slow=3.0)
    assert slower[0] == steps[0]  # on all rows, before the machine became slower
    assert all(12 <= step <= 14 for step in slower[1:])
    assert 5 <= job.clock.left < 15
    assert len(job.plan.lengths) == 5
    assert read_plan(tmp_path / "model.fit/plan.json", {}) == job.plan
    again, resumed = timed_folds(base, tmp_path, job.plan, 1e6, slow=1.0)
    assert (again, resumed.plan) == (slower, job.plan)


TEXTS = small_base.sentences(80, 2)
OTHERS = [small_base.other(text) for text in TEXTS]
FILES = {
    "text label": [(text, f"label {n % 3}" if n else "once") for n, text in enumerate(TEXTS)],
    "sentence1 sentence2 score": [(*both, str(n % 4)) for n, both in enumerate(zip(TEXTS, OTHERS, strict=True))],
    "query document relevance": [(*both, str(n % 3)) for n, both in enumerate(zip(TEXTS, OTHERS, strict=True))],
    "anchor positive negative": list(zip(TEXTS, OTHERS, OTHERS[1:] + OTHERS[:1], strict=True)),
    "source target": list(zip(TEXTS, OTHERS, strict=True)),
}


@pytest.mark.parametrize(
    "header", [pytest.param(one, marks=pytest.mark.long) if one == "text label" else one for one in FILES]
)
def test_every_kind_of_labelled_rows_is_scored_in_folds(base, tmp_path, header):
    data = small_base.write_rows(tmp_path / "data.tsv", header, FILES[header])
    encoder = Encoder.load(base)
    prepared = prepare_inputs(request(data=(str(data),), output=tmp_path / "model"), [encoder], lambda line: None)
    assert len(prepared.folds) == FOLDS
    (score,) = fold_scores([encoder] * FOLDS, prepared.folds, open_memory(tmp_path / "measured"))
    assert 25 <= len(score.items) <= 55  # of 80 rows less 25, those with an answer that share no text with others
    assert len(score.clusters) == len(score.items)
    assert compare_averages([score], [score]).effective >= 20


def test_folds_that_ask_nothing_are_refused(base, tmp_path):
    """Two labels, of which the second has two rows: they are test rows, and every fold has the first label alone."""
    rows = [(text, "often") for text in TEXTS]
    (split,) = splits_of(build_dataset(Shape.CLASSIFICATION, rows))
    tested = set(list(split.test["text"])[:2])
    rows = [(text, "rare" if text in tested else "often") for text in TEXTS]
    data = small_base.write_rows(tmp_path / "data.tsv", "text label", rows)
    asked = request(data=(str(data),), output=tmp_path / "model")
    with pytest.raises(InputError, match="too few different labels"):
        prepare_inputs(asked, [Encoder.load(base)], lambda line: None)


@pytest.mark.long
def test_eighty_pairs_are_fitted_and_judged_on_25_clusters(base, tmp_path):
    said, data = [], small_base.pairs(tmp_path / "faq.tsv", 80)
    done = fit(data, tmp_path / "model", base=str(base), budget="200steps", force=True, log=said.append)
    result = done.result
    assert (result.folds, result.total.clusters, result.total.effective) == (4, 25, 25)
    assert result.power.gain > 0
    assert any("chosen by cross-validation, on 4 folds of the training rows" in line for line in said)
    (source,) = result.sources
    assert (source.rows.validation, source.rows.test, source.rows.train) == (0, 25, 55)
    best = result.validation
    assert best.score is not None
    assert best.low < best.difference < best.high
    assert "4 folds of the training rows" in result.believe
    folds = [read(path) for path in sorted((tmp_path / "model.fit" / "data").glob("fold-*/*.parquet"))]
    assert len(folds) == 4
    assert all(40 <= len(rows) <= 43 for rows in folds)  # three quarters of 55
    assert result.threshold.queries == 55  # each asked of the model that has not seen it
    assert done.scores[str(data)].after > done.scores[str(data)].before
