"""The tables and the figure of a synthesis: they show the numbers that were counted."""

from matplotlib.backends.backend_agg import FigureCanvasAgg

from sentloom.report.plots import write
from sentloom.report.synthesis_plots import synthesis as figure_of
from sentloom.report.synthesis_tables import bar, synthesis
from sentloom.writing.filters import REASONS, Filtering
from sentloom.writing.summary import KindSummary, Sample, Summary
from tests.report.printing import printed

KEPT = [Sample("A man [bold]plays", "A man makes music.", 0.97, "")]
DROPPED = [Sample("A man plays", f"number {at}", 0.31, "score") for at in range(7)]
ENTAILMENT = KindSummary(60, {"score": 30, "equal": 10}, [0] * 5 + [20] + [0] * 12 + [20, 60], KEPT, DROPPED)
CONTRADICTION = KindSummary(25, {"score": 70, "empty": 5}, [30] + [0] * 8 + [45] + [0] * 9 + [25], [], DROPPED)
KINDS = {"entailment": ENTAILMENT, "contradiction": CONTRADICTION}
SUMMARY = Summary(100, 1000, 20, 35, Filtering(threshold=0.9), KINDS)
NOTHING = KindSummary(0, {}, [0] * 20, [], [])


def lines(summary):
    return [line for part in synthesis(summary) for line in printed(part).splitlines() if line.strip()]


def test_yields_stand_in_the_table():
    found = lines(SUMMARY)
    assert found[0].strip() == "Synthesis: 100 of 1,000 sources; threshold 0.9"
    rows = [line.split() for line in found]
    assert ["written", "100", "100.0%", "100", "100.0%"] in rows
    assert ["kept", "60", "60.0%", "25", "25.0%"] in rows
    assert ["dropped:", "score", "30", "30.0%", "70", "70.0%"] in rows
    assert ["dropped:", "equal", "10", "10.0%", "0", "0.0%"] in rows
    assert not [row for row in rows if "substring" in row]  # a filter that dropped nothing has no row
    assert found[-1].startswith("20 triplets (0.20 per source); 35 pairs")


def test_the_histogram_counts_in_tenths():
    rows = [line.split() for line in lines(SUMMARY)]
    assert next(row for row in rows if row[:3] == ["0.9", "to", "1.0"])[4::2] == ["80", "25"]
    assert next(row for row in rows if row[:3] == ["0.0", "to", "0.1"])[-1] == "30"


def test_bars_are_in_proportion():
    assert bar(1, 10) == "█" * 10
    assert bar(0.5, 10) == "█" * 5
    assert bar(0.25, 3) == "▊"
    assert bar(0.0001, 10) == "▏"
    assert bar(0, 10) == ""


def test_samples_are_five_and_as_they_are():
    text = "\n".join(lines(SUMMARY))
    assert "A man [bold]plays" in text
    assert "contradiction: kept: none" in text
    assert text.count("number 4") == 2
    assert "number 5" not in text


def test_an_empty_ledger_has_its_tables_and_figure(tmp_path):
    empty = Summary(0, 10, 0, 0, Filtering(), {"entailment": NOTHING, "contradiction": NOTHING})
    assert "0 triplets" in "\n".join(lines(empty))
    write(figure_of(empty), tmp_path / "empty.png")


def test_the_figure_shows_shares_threshold_and_reasons(tmp_path):
    figure = figure_of(SUMMARY)
    above, below = figure.axes
    assert "threshold 0.9" in [text.get_text() for text in above.texts]
    assert sorted(text.get_text() for text in below.texts if text.get_text()) == sorted(
        ["60", "30", "10", "25", "70"]
    )  # 5 has no room
    legend = [text.get_text() for text in below.get_legend().get_texts()]
    assert legend == ["kept", "empty", "equal", "score"]
    for name in ("one.png", "two.png"):
        write(figure_of(SUMMARY), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_the_title_and_the_legends_are_inside_the_figure():
    every = KindSummary(30, dict.fromkeys(REASONS, 10), [5] * 20, [], [])
    figure = figure_of(Summary(10**9, 10**9, 10**9, 10**9, Filtering(), dict.fromkeys(KINDS, every)))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for part in [figure._suptitle, *(axes.get_legend() for axes in figure.axes)]:
        box = part.get_window_extent(canvas.get_renderer())
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
