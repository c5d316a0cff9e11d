"""The result: what each part of a fit becomes; a whole one is built in test_fit."""

from dataclasses import replace
from pathlib import Path

import pytest

from sentloom.data.shapes import Shape
from sentloom.encoder.lengths import Cut
from sentloom.fitting.advice import Advice, AdviceKind
from sentloom.fitting.build_result import advice_after, final_run, input_summaries, outcome, route_summaries
from sentloom.fitting.gate import Gate, Uses
from sentloom.fitting.inputs import InputSource, look
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.prepare import Prepared, count_rows
from sentloom.fitting.race import TrainedRun
from sentloom.fitting.result import RowCounts, Run
from sentloom.fitting.routes import Route, SkippedRoute
from sentloom.fitting.split import Split
from sentloom.fitting.verify import Proof
from tests.fitting import small_base
from tests.report.results_by_hand import measure
from tests.small_data import build_dataset

RUN = Run("pairs", 1, 10, 0.0, 60.0, 1.0, 0.5, 1.5, "best")
PLAN = FitPlan({}, (Route("pairs", "because", ()),), (SkippedRoute("simcse", "no text", for_time=True),))


@pytest.mark.parametrize(
    ("verdict", "written", "shown"),
    [
        ("better", True, "won"),
        ("no difference shown", False, "best, not written"),
        ("worse", True, "best, forced"),
    ],
)
def test_the_best_run_has_won_only_if_its_model_is_better(verdict, written, shown):
    end = outcome(Gate(verdict, "because"), written)
    assert final_run(RUN, end).verdict == shown
    dropped = replace(RUN, verdict="dropped")
    assert final_run(dropped, end) is dropped


def test_routes_that_were_tried_and_skipped():
    assert [
        (route_summary.name, route_summary.why, route_summary.tried) for route_summary in route_summaries(PLAN)
    ] == [
        ("pairs", "because", True),
        ("simcse", "no text", False),
    ]


def test_what_became_of_the_rows_of_an_input(tmp_path):
    (fit_input,) = look([InputSource(str(small_base.pairs(tmp_path / "faq.tsv", 200)))])
    parts = [build_dataset(Shape.PAIRS, [(f"q {n}", f"a {n}") for n in range(count)]) for count in (120, 30, 40)]
    split, cuts = (Split(*parts, parts[1]),), (Cut(128, 200, 5),)
    counts = (count_rows(fit_input, replace(split[0], left_out={"rows that share a text": 10}), parts[0]),)
    prepared = Prepared((fit_input,), split, (parts[0],), (), (), (), (), None, cuts=cuts, row_counts=counts)
    (summary,) = input_summaries(prepared)
    assert summary.rows == RowCounts(200, 120, 30, 40, {"rows that share a text": 10})
    assert summary.distinct == 200
    assert (summary.shape, summary.words, summary.sha256) == ("pairs", 5, fit_input.data.sha256)
    assert summary.notes == ("training reads up to 128 tokens of a text, and 2.5% of the texts are longer",)


def test_advice_names_routes_that_there_was_no_time_for():
    loss = measure(before=60.0, after=57.0, spread=2.0)
    proof = Proof((loss,), loss, Gate("worse", "because"), (), Uses(1, ""), None, "", (), (), None)
    prepared = Prepared((), (), (), (), (), (), (), None)
    advice = advice_after(proof, TrainedRun(RUN, None, None), prepared, PLAN, Path("model.fit"))
    assert Advice(AdviceKind.MORE_TIME, names=("simcse",)) in advice
