"""Figures hold what they were given, where it belongs and in the colour of its meaning."""

from helpers import metrics, plots

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba

random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def style():
    """Use the book's style, without a screen, and leave nothing behind."""
    with matplotlib.rc_context():
        plt.switch_backend("agg")
        plots.use_style()
        yield
        plt.close("all")


@pytest.fixture
def ax():
    return plt.figure().add_subplot()


def test_the_style_is_the_books():
    assert plt.rcParams["svg.hashsalt"] == "bayesian-neural-networks-in-jax"
    assert plt.rcParams["image.origin"] == "lower"


def test_the_grid_is_square_and_its_first_coordinate_is_the_fastest():
    found = np.asarray(plots.grid(4))
    assert found.shape == (16, 2) and plots.grid().shape == (61**2, 2)
    np.testing.assert_allclose(found[:4, 0], [-3, -1, 1, 3], atol=1e-6)
    np.testing.assert_allclose(found[::4, 1], [-3, -1, 1, 3], atol=1e-6)
    assert (found[:4, 1] == -3).all()


@pytest.mark.parametrize("num_classes", [2, 3])
def test_points_have_the_colour_of_their_class(ax, num_classes):
    x, y = random.normal(size=(20, 2)), np.arange(20) % num_classes
    plots.points(ax, x, y)
    assert len(ax.collections) == num_classes
    for label, drawn in enumerate(ax.collections):
        np.testing.assert_allclose(drawn.get_offsets(), x[y == label])
        assert (
            to_hex(drawn.get_facecolor()[0]).upper()
            == (plots.CLASS_0, plots.CLASS_1, plots.CLASS_2)[label]
        )
        assert drawn.get_label() == f"class {label}"
    markers = {drawn.get_paths()[0].vertices.tobytes() for drawn in ax.collections}
    assert len(markers) == num_classes  # a colour is never alone


def test_points_of_class_0_alone_leave_room_for_class_1_in_the_legend(ax):
    plots.points(ax, np.ones((3, 2)), np.zeros(3, int))
    assert [drawn.get_label() for drawn in ax.collections] == ["class 0", "class 1"]


def test_a_surface_has_its_values_where_the_grid_has_its_points(ax):
    at = np.asarray(plots.grid(31))
    drawn = plots.surface(ax, at[:, 1] / 6 + 0.5)  # rises with the second coordinate
    assert (
        drawn.get_extent() == [-3, 3, -3, 3]
        and drawn.origin == "lower"
        and drawn.get_clim() == (0, 1)
    )
    image = drawn.get_array()
    assert (np.diff(image, axis=0) > 0).all() and (np.diff(image, axis=1) == 0).all()
    (line,) = [path for contour in ax.collections for path in contour.get_paths()]
    np.testing.assert_allclose(line.vertices[:, 1], 0.0, atol=0.1)  # half a cell of the grid


def test_a_surface_without_a_boundary_may_have_another_height(ax):
    drawn = plots.surface(ax, np.arange(9.0), plots.TOTAL_MAP, high=8.0, boundary=False)
    assert not ax.collections and drawn.get_clim() == (0, 8) and drawn.get_cmap() == plots.TOTAL_MAP


def test_every_task_has_a_panel_with_a_title_of_its_own():
    seen = []

    def draw(ax, task):
        seen.append(task)
        if task == 1:
            ax.set_title("the second")

    fig, axes = plots.task_panels(4, draw, columns=3)
    assert axes.shape == (2, 3) and seen == [0, 1, 2, 3]
    assert [ax.axison for ax in axes.flat] == [True] * 4 + [False] * 2
    titles = [ax.get_title(loc="left") or ax.get_title() for ax in axes.flat]
    assert titles == ["task 1", "the second", "task 3", "task 4", "", ""]
    assert axes[0, 0].get_xlim() == axes[1, 0].get_ylim() == (-3, 3)
    fig.draw_without_rendering()


def test_a_reliability_diagram_has_its_bins_with_two_standard_errors_and_a_diagonal(ax):
    p = random.uniform(size=400)
    found = metrics.calibration_error(p, (random.uniform(size=400) < p).astype(int))
    plots.reliability(ax, found, "right", plots.TOTAL)
    diagonal, points = ax.get_lines()[:2]
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    np.testing.assert_allclose(
        points.get_xydata(), np.stack([found.confidence, found.frequency], axis=1)
    )
    (bars,) = ax.collections
    lengths = [np.ptp(segment[:, 1]) for segment in bars.get_segments()]
    np.testing.assert_allclose(lengths, 4 * found.standard_error)
    assert to_rgba(points.get_color()) == to_rgba(plots.TOTAL)
    assert ax.get_legend_handles_labels()[1] == ["right"]
