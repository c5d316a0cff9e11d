"""The plots of a fit show the numbers of its result."""

from dataclasses import replace

import pytest

from sentloom.fitting.result import Curve, Run
from sentloom.report import fit_plots
from tests.report.results_by_hand import FULL


def test_bars_and_curves_of_the_plots_are_the_storys():
    figures = fit_plots.figures(FULL)
    widths = [bar.get_width() for bar in figures["scores"].axes[0].patches]
    shown = [*FULL.measures[:2], FULL.total, *FULL.measures[2:]]
    assert widths == [*(one.before for one in shown), *(one.after for one in shown)]
    loss, mean, end = figures["training-1"].axes[0].lines
    assert tuple(loss.get_ydata()) == FULL.curves[0].loss
    assert mean.get_ydata()[0] == pytest.approx((2 + 1 + 2 / 3) / 3)  # of 30 values, two to both sides
    assert end.get_ydata()[0] == mean.get_ydata()[-1]
    ways = [[*zip(*line.get_data(), strict=True)] for line in figures["trajectory"].axes[0].lines]
    assert ways == [[(-2.31, 0.412), (-2.44, 0.39)], [(-2.31, 0.412), (-2.62, 0.35), (-2.88, 0.301)]]  # the winner last
    named = [text.get_text() for text in figures["trajectory"].axes[0].texts]
    assert sorted(named) == ["base", "pairs", "simcse"]


def test_losses_that_are_no_numbers_are_passed_over():
    lines = fit_plots.loss_figure(Curve("r", "s", (0, 1, 2), (1.0, float("nan"), 0.0))).axes[0].lines
    assert [tuple(lines[0].get_xdata()), tuple(lines[0].get_ydata())] == [(0, 2), (1.0, 0.0)]


def test_merged_models_are_named_in_full_and_have_no_round():
    trained = Run("pairs with mined negatives", 2, 60, 9.0, 80.0, 4.0, 1.0, 7.0, "finished")
    merged = replace(trained, route="pairs with mined negatives, merged with 25% of the base", rung=3, steps=0)
    axes = fit_plots.runs_figure([trained, merged]).axes[0]
    names = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert names == ["pairs with mined …, round 2", "pairs with mined negatives, merged with 25% of the base"]
