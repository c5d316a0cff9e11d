"""The figure of a synthesis shows the numbers that were counted."""

from itertools import pairwise

from matplotlib.backends.backend_agg import FigureCanvasAgg

from sentloom.lab.synthesis_plots import synthesis_figure
from sentloom.report.plots import write
from sentloom.writing.filters import REASONS, Filtering
from sentloom.writing.triplets import KindSummary, Summary
from tests.report.small_summaries import EMPTY, KINDS, SUMMARY


def test_the_figure_shows_shares_threshold_and_reasons(tmp_path):
    figure = synthesis_figure(SUMMARY)
    above, below = figure.axes
    assert "threshold 0.9" in [text.get_text() for text in above.texts]
    assert sorted(text.get_text() for text in below.texts if text.get_text()) == sorted(
        ["60", "30", "10", "25", "70"]
    )  # 5 has no room
    legend = [text.get_text() for text in below.get_legend().get_texts()]
    assert legend == ["kept", "empty", "equal", "score"]
    for name in ("one.png", "two.png"):
        write(synthesis_figure(SUMMARY), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_neighbours_have_different_shades_whatever_was_dropped():
    every = KindSummary(1, dict.fromkeys(REASONS, 10), [0] * 20, [], [])
    _, below = synthesis_figure(Summary(1, 1, 0, 1, Filtering(), {"query": every})).axes
    colours = [bars[0].get_facecolor() for bars in below.containers]
    assert all(colour != neighbour for colour, neighbour in pairwise(colours))
    dropped = KindSummary(1, {"unfinished": 1, "score": 1}, [0] * 20, [], [])
    _, below = synthesis_figure(Summary(1, 1, 0, 1, Filtering(), {"query": dropped})).axes
    _, first, second = (bars[0].get_facecolor()[0] for bars in below.containers)
    assert abs(first - second) > 0.2


def test_the_title_and_the_legends_are_inside_the_figure():
    every = KindSummary(30, dict.fromkeys(REASONS, 10), [5] * 20, [], [])
    figure = synthesis_figure(Summary(10**9, 10**9, 10**9, 10**9, Filtering(), dict.fromkeys(KINDS, every)))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for part in [figure._suptitle, *(axes.get_legend() for axes in figure.axes)]:
        box = part.get_window_extent(canvas.get_renderer())
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1


def test_an_empty_ledger_has_its_figure(tmp_path):
    write(synthesis_figure(EMPTY), tmp_path / "empty.png")
    assert (tmp_path / "empty.png").stat().st_size > 0
