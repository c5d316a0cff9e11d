"""The plots of a fit show the numbers of its result."""

from sentloom.report import fit_plots
from tests.report.results_by_hand import FULL


def test_bars_and_curves_of_the_plots_are_the_storys():
    figures = fit_plots.figures(FULL)
    widths = [bar.get_width() for bar in figures["scores"].axes[0].patches]
    shown = [*FULL.measures[:2], FULL.total, *FULL.measures[2:]]
    assert widths == [*(one.before for one in shown), *(one.after for one in shown)]
    (line,) = figures["training"].axes[0].lines
    assert tuple(line.get_ydata()) == FULL.curves[0].loss
    points = [tuple(map(float, xy)) for one in figures["trajectory"].axes[0].collections for xy in one.get_offsets()]
    assert points == [(-2.31, 0.412), (-2.62, 0.35), (-2.88, 0.301)]
