"""PNG files and SVG: complete, reproducible, and with the numbers and texts that they were given."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings

from sentloom.evaluation.results import Cell
from sentloom.lab.geometry_figures import align_uniform, heat_map, pairs_on_a_plane, trajectory
from sentloom.report.plots import inline_svg, score_bars, write
from tests.lab.test_geometry_figures import PAIRS, SWEEP, crowd, texts
from tests.report.results_by_hand import WORDS

BARS = [("STS-B", {"base": Cell(60.0, 58.0, 62.5), "ours": Cell(70.0, 68.0, 71.0)}), ("MR", {"ours": Cell(81.25)})]
FIGURES = {
    "scatter": lambda: align_uniform(crowd(5)),
    "trajectory": lambda: trajectory("run", [(-1.0, 0.2), (-2.0, 0.25), (-2.5, 0.3)], ["0", "100", "200"]),
    "heat map": lambda: heat_map("model", SWEEP),
    "pairs": lambda: pairs_on_a_plane("model", PAIRS),
    "bars": lambda: score_bars("Scores", BARS),
}


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_numbers_give_the_same_bytes(name, tmp_path):
    for file in ("one.png", "two.png"):
        write(FIGURES[name](), tmp_path / file)
    first = (tmp_path / "one.png").read_bytes()
    assert first == (tmp_path / "two.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert b"Software" not in first
    assert b"Date" not in first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "two.png"]


def test_no_window_and_no_global_figure_is_made(tmp_path):
    from matplotlib import _pylab_helpers

    write(FIGURES["heat map"](), tmp_path / "new folder/heat.png")
    assert (tmp_path / "new folder/heat.png").is_file()
    assert not _pylab_helpers.Gcf.figs


def test_bars_have_values_intervals_and_a_legend():
    axes = score_bars("Scores", BARS).axes[0]
    assert texts(axes.figure) == ["60.0", "70.0", "81.2"]
    assert [bar.get_width() for bar in axes.patches] == [60.0, 70.0, 81.25]
    assert [tuple(line.get_xdata()) for line in axes.lines] == [(58.0, 62.5), (68.0, 71.0), (81.25, 81.25)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["base", "ours"]
    assert axes.get_xlim()[0] == 0


def test_one_model_needs_no_legend_and_negative_scores_have_room():
    axes = score_bars("Scores", [("a", {"m": Cell(-5.0, -8.0, -2.0)}), ("b", {"m": Cell(3.0)})]).axes[0]
    assert axes.get_legend() is None
    assert axes.get_xlim()[0] < -8


def test_dollar_signs_in_names_are_no_formulas(tmp_path):
    name = r"from $\frac{ to $"
    write(score_bars(name, [(name, {name: Cell(1.0, 0.5, 1.5), "b": Cell(2.0, 1.5, 2.5)})]), tmp_path / "bars.png")
    write(align_uniform({name: (-2.0, 0.3)}), tmp_path / "plane.png")
    assert (tmp_path / "bars.png").read_bytes()[:4] == (tmp_path / "plane.png").read_bytes()[:4] == b"\x89PNG"


def test_a_deviation_over_seeds_is_drawn_to_both_sides():
    (line,) = score_bars("Scores", [("a", {"m": Cell(70.0, deviation=1.5)})]).axes[0].lines
    assert tuple(line.get_xdata()) == (68.5, 71.5)


class Words(HTMLParser):
    """The tags, attributes and texts of a picture, as a browser reads them."""

    def __init__(self, picture):
        super().__init__()
        self.tags, self.names, self.texts = set(), set(), []
        self.feed(picture)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.filterwarnings("ignore:Glyph")
@settings(max_examples=10, deadline=None)
@given(name=WORDS)
@example("<script>alert(1)</script>&")
@example('" onload="alert(1)')
@example("$x$ #0072b2 \\alpha")
@example("\x00\x1b\ufffe\x85")
def test_any_text_stays_text_in_svg(name):
    found = Words(inline_svg("bars", score_bars(name, [(name, {name: Cell(1.0, 0.5, 1.5), "b": Cell(2.0)})])))
    assert found.tags <= {"svg", "title", "g", "defs", "clippath", "rect", "path", "use", "text"}
    assert not {one for one in found.names if one.startswith("on")}
    if name.isprintable() and name.isascii() and len(name) < 26 and name == name.strip() and name:
        assert found.texts.count(name) >= 3  # as title, row and label


def test_svg_is_the_same_every_time_and_has_the_colours_of_the_page():
    first, second = (inline_svg("bars", score_bars("Scores", BARS)) for _ in range(2))
    assert first == second
    assert "fill: var(--accent)" in first
    assert first.startswith('<svg class="plot" role="img" aria-label="Scores" viewBox="0 0 ')  # as wide as its place
    assert not any(word in first for word in ("http", "<style", "<metadata"))
