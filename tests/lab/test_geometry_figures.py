"""Figures of geometry: points are where their numbers are, labels do not cover each other, the best is framed."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sentloom.evaluation.geometry import UniformityVariant
from sentloom.lab.geometry import PairMap, Sweep
from sentloom.lab.geometry_figures import align_uniform, heat_map, pairs_on_a_plane, trajectory

SWEEP = Sweep((0, 1, 2), ("first", "mean"), np.array([[10.0, 55.5], [20.0, 63.19], [31.4, 52.57]]))
PAIRS = PairMap(*(np.random.default_rng(n).normal(size=(2, n, 2)) for n in (4, 5)))


def crowd(n, seed=0):
    rng = np.random.default_rng(seed)
    return {f"a model named {k}": tuple(rng.normal(size=2)) for k in range(n)}


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def boxes(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return [text.get_window_extent(canvas.get_renderer()) for text in figure.axes[0].texts if text.get_text()]


@pytest.mark.parametrize("seed", range(5))
def test_labels_do_not_cover_each_other(seed):
    points = crowd(7, seed)
    figure = align_uniform(points)
    assert texts(figure) == list(points)
    placed = boxes(figure)
    assert not any(a.overlaps(b) for place, a in enumerate(placed) for b in placed[:place])
    room = figure.bbox
    assert all(room.x0 <= box.x0 and box.x1 <= room.x1 for box in placed)


def test_points_are_where_their_numbers_are():
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
    axes = pairs_on_a_plane("model", PAIRS).axes[0]
    assert len(axes.lines) == 9
    ends = {tuple(point) for line in axes.lines for point in line.get_xydata().round(6)}
    dots = {tuple(point) for group in axes.collections for point in np.asarray(group.get_offsets()).round(6)}
    assert ends == dots
    assert len(dots) == 18
