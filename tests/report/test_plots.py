"""Figures: what stands in them, that labels do not cover each other, and that files are whole and reproducible."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sentloom.errors import InputError
from sentloom.evaluation.geometry import ScoredPairs, UniformityVariant
from sentloom.evaluation.layers import Sweep
from sentloom.report.plots import (
    Bar,
    align_uniform,
    choose_pairs,
    chosen_vectors,
    heat_map,
    map_pairs,
    score_bars,
    trajectory,
    write,
)

SWEEP = Sweep((0, 1, 2), ("first", "mean"), np.array([[10.0, 55.5], [20.0, 63.19], [31.4, 52.57]]))
BARS = {"STS-B": {"base": Bar(60.0, 58.0, 62.5), "ours": Bar(70.0, 68.0, 71.0)}, "MR": {"ours": Bar(81.25)}}


def sides(n, seed):
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(n, 8))
    return left, left + 0.1 * rng.normal(size=(n, 8))


def crowd(n, seed=0):
    rng = np.random.default_rng(seed)
    return {f"a model named {k}": tuple(rng.normal(size=2)) for k in range(n)}


FIGURES = {
    "scatter": lambda: align_uniform(crowd(5)),
    "trajectory": lambda: trajectory("run", [(-1.0, 0.2), (-2.0, 0.25), (-2.5, 0.3)], ["0", "100", "200"]),
    "heat map": lambda: heat_map("model", SWEEP),
    "pairs": lambda: map_pairs("model", sides(4, 0), sides(5, 1)),
    "bars": lambda: score_bars("Scores", BARS),
}


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def boxes(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return [text.get_window_extent(canvas.get_renderer()) for text in figure.axes[0].texts if text.get_text()]


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


@pytest.mark.parametrize("seed", range(5))
def test_labels_do_not_cover_each_other(seed):
    points = crowd(7, seed)
    figure = align_uniform(points)
    assert texts(figure) == list(points)
    found = boxes(figure)
    assert not any(a.overlaps(b) for place, a in enumerate(found) for b in found[:place])
    room = figure.bbox
    assert all(room.x0 <= box.x0 and box.x1 <= room.x1 for box in found)


def test_points_stand_where_they_should():
    axes = align_uniform({"a": (-2.5, 0.2), "b": (-1.0, 0.4)}).axes[0]
    assert [tuple(group.get_offsets()[0]) for group in axes.collections] == [(-2.5, 0.2), (-1.0, 0.4)]
    assert "uniformity" in axes.get_xlabel()
    assert "alignment" in axes.get_ylabel()


def test_arrows_go_from_each_checkpoint_to_the_next():
    points = [(-1.0, 0.2), (-2.0, 0.25), (-2.5, 0.3)]
    arrows = [text for text in trajectory("run", points, ["0", "100", "200"]).axes[0].texts if not text.get_text()]
    assert [(arrow.xyann, arrow.xy) for arrow in arrows] == list(pairwise(points))


def test_labels_keep_off_the_arrows():
    # The way leads along the axis to the right and back below: above the points there is room.
    figure = trajectory("run", [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, -1.0)], ["one", "two", "three", "four"])
    two = boxes(figure)[1]
    left, right = figure.axes[0].transData.transform([(0.0, 0.0), (2.0, 0.0)])
    assert two.y0 > left[1] or two.y1 < right[1]


def test_of_many_checkpoints_some_are_named_and_the_last_is():
    points = [(-0.05 * step, 0.2 + 0.1 * np.sin(step)) for step in range(40)]
    named = [text for text in texts(trajectory("run", points, [str(100 * step) for step in range(40)])) if text]
    assert named == ["0", "400", "800", "1200", "1600", "2000", "2400", "2800", "3200", "3600", "3900"]


def test_as_printed_greater_alignment_is_better():
    assert "↓" in align_uniform({"a": (-2.5, 0.2)}).axes[0].get_ylabel()
    assert "↑" in align_uniform({"a": (-2.5, -0.2)}, UniformityVariant.PRINTED).axes[0].get_ylabel()


def test_a_long_title_is_broken_and_not_cut():
    figure = heat_map("organisation/" + "a-very-long-model-name-" * 4, SWEEP)
    FigureCanvasAgg(figure).draw()
    box = figure.get_suptitle(), figure._suptitle.get_window_extent()
    assert "\n" in box[0]
    assert box[1].x1 <= figure.bbox.x1


def test_one_checkpoint_is_a_point_without_arrows():
    assert texts(trajectory("run", [(-1.0, 0.2)], ["0"])) == ["0"]


def test_every_cell_has_its_number_and_the_best_a_frame():
    figure = heat_map("model", SWEEP)
    assert texts(figure) == ["10.0", "55.5", "20.0", "63.2", "31.4", "52.6"]
    (frame,) = figure.axes[0].patches
    assert (frame.get_x(), frame.get_y()) == (0.5, 0.5)  # around column 1 of row 1


def test_numbers_can_be_read_on_every_colour():
    sweep = Sweep(tuple(range(30)), ("mean",), np.linspace(0, 80, 30)[:, None])
    axes = heat_map("model", sweep).axes[0]
    (image,) = axes.images
    for text in axes.texts:
        column, row = map(int, text.get_position())
        red, green, blue, _ = image.cmap(image.norm(sweep.spearman[row, column]))
        behind = _luminance((red, green, blue))
        front = _luminance([int(text.get_color()[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        light, dark = max(behind, front), min(behind, front)
        assert (light + 0.05) / (dark + 0.05) > 3.5


def _luminance(colour):
    """Of the contrast ratio in the accessibility guidelines for web content."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_pairs_are_joined_to_their_partners():
    axes = map_pairs("model", sides(4, 0), sides(5, 1)).axes[0]
    assert len(axes.lines) == 9
    ends = {tuple(point) for line in axes.lines for point in line.get_xydata().round(6)}
    dots = {tuple(point) for group in axes.collections for point in np.asarray(group.get_offsets()).round(6)}
    assert ends == dots
    assert len(dots) == 18


def test_near_partners_stay_near_on_the_plane():
    axes = map_pairs("model", sides(20, 0), tuple(np.random.default_rng(5).normal(size=(2, 20, 8)))).axes[0]
    lengths = [np.linalg.norm(np.diff(line.get_xydata(), axis=0)) for line in axes.lines]
    high, low = lengths[:20], lengths[20:]  # the high pairs are drawn first
    assert np.median(high) < np.median(low) / 3


def test_the_highest_and_lowest_pairs_are_chosen():
    gold = np.array([5.0, 0.0, 4.0, 4.5, 1.0, 0.5, 5.0, 2.5])
    high, low = choose_pairs(gold, 3)
    assert sorted(high[:2]) == [0, 6]
    assert list(high[2:]) == [3]
    assert list(low) == [1, 5]
    assert [rows.tolist() for rows in choose_pairs(gold, 3)] == [high.tolist(), low.tolist()]
    with pytest.raises(InputError, match="scores from 0 to 1"):
        choose_pairs(gold / 5)


def test_vectors_of_both_sides_are_those_of_the_chosen_pairs():
    pairs = ScoredPairs(["a", "b", "c"], ["d", "e", "f"], np.array([5.0, 2.0, 0.5]))
    high, low = chosen_vectors(lambda texts: np.array([[ord(text)] for text in texts], np.float32), pairs)
    assert [side.tolist() for side in (*high, *low)] == [[[97.0]], [[100.0]], [[99.0]], [[102.0]]]


def test_bars_have_values_intervals_and_a_legend():
    axes = score_bars("Scores", BARS).axes[0]
    assert texts(axes.figure) == ["60.0", "70.0", "81.2"]
    assert [bar.get_width() for bar in axes.patches] == [60.0, 70.0, 81.25]
    assert [tuple(line.get_xdata()) for line in axes.lines] == [(58.0, 62.5), (68.0, 71.0), (81.25, 81.25)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["base", "ours"]
    assert axes.get_xlim()[0] == 0


def test_one_model_needs_no_legend_and_negative_scores_have_room():
    axes = score_bars("Scores", {"a": {"m": Bar(-5.0, -8.0, -2.0)}, "b": {"m": Bar(3.0)}}).axes[0]
    assert axes.get_legend() is None
    assert axes.get_xlim()[0] < -8


def test_dollar_signs_in_names_are_no_formulas(tmp_path):
    name = r"from $\frac{ to $"
    write(score_bars(name, {name: {name: Bar(1.0, 0.5, 1.5), "b": Bar(2.0, 1.5, 2.5)}}), tmp_path / "bars.png")
    write(align_uniform({name: (-2.0, 0.3)}), tmp_path / "plane.png")
    assert (tmp_path / "bars.png").read_bytes()[:4] == (tmp_path / "plane.png").read_bytes()[:4] == b"\x89PNG"
