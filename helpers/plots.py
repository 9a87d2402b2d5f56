"""Figures: functions of axes and arrays, such as ``plots.surface(ax, p)``; one colour and one
marker per meaning.
"""

from helpers import checks
from helpers.metrics import Calibration

from collections.abc import Callable

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats

CLASS_0, CLASS_1, CLASS_2 = "#0072B2", "#D55E00", "#C9B800"
TOTAL, ALEATORIC, EPISTEMIC = "#555555", "#009E73", "#AA4499"
TRUTH = "#000000"
PROBABILITY_MAP = LinearSegmentedColormap.from_list(
    "probability", ["#7FB2DA", "#F8F8F6", "#EFAE7C"]
)
ALEATORIC_MAP = LinearSegmentedColormap.from_list("aleatoric", ["#FFFFFF", ALEATORIC, "#00382A"])
EPISTEMIC_MAP = LinearSegmentedColormap.from_list("epistemic", ["#FFFFFF", EPISTEMIC, "#3D1538"])
TOTAL_MAP = LinearSegmentedColormap.from_list("total", ["#FFFFFF", "#8A8A8A", "#1E1E1E"])
LIMIT = 3.0


def use_style() -> None:
    """Use the book's style of Matplotlib, with vector figures that hold no date."""
    plt.style.use("helpers.book")
    set_matplotlib_formats("svg", metadata={"Date": None})


def grid(size: int = 61) -> Float[Array, "point 2"]:
    """Return the ``size`` squared points of a square grid over [-3, 3] squared, first coordinate
    fastest.
    """
    checks.count(least=2, size=size)
    line = jnp.linspace(-LIMIT, LIMIT, size)
    return jnp.stack([a.ravel() for a in jnp.meshgrid(line, line)], axis=-1)


def points(ax: Axes, x: Float[Array, "point 2"], y: Int[Array, " point"], size: float = 16) -> None:
    """Draw labelled points: class 0 as blue circles, class 1 as orange triangles, class 2 as yellow
    squares.

    Args:
        ax: what is drawn on.
        x: coordinates of the points.
        y: classes of the points, 0, 1 or 2.
        size: area of a marker, in points squared.
    """
    kinds = ((0, CLASS_0, "o"), (1, CLASS_1, "^"), (2, CLASS_2, "s"))
    for label, colour, marker in kinds[: int(np.max(y, initial=1)) + 1]:
        part = np.asarray(x)[np.asarray(y) == label]
        ax.scatter(
            *part.T,
            s=size,
            c=colour,
            marker=marker,
            edgecolors="white",
            linewidths=0.4,
            label=f"class {label}",
        )


def surface(
    ax: Axes,
    values: Float[Array, " point"],
    colours=PROBABILITY_MAP,
    high: float = 1.0,
    boundary=True,
):
    """Draw values at the points of a grid as an image; return the image.

    Args:
        ax: what is drawn on.
        values: at the points of ``grid(size)``, in their order.
        colours: a colour map, from 0 to ``high``.
        high: value of the last colour; 1 for probabilities.
        boundary: whether to draw the line where a value is 1/2.
    """
    size = round(np.sqrt(values.size))
    image, extent = np.asarray(values).reshape(size, size), (-LIMIT, LIMIT, -LIMIT, LIMIT)
    drawn = ax.imshow(
        image, extent=extent, cmap=colours, vmin=0, vmax=high, origin="lower", rasterized=True
    )
    if boundary:
        ax.contour(image, levels=[0.5], extent=extent, colors=TRUTH, linewidths=1.0)
    return drawn


def task_panels(
    num_tasks: int, draw: Callable[[Axes, int], None], columns: int = 6
) -> tuple[Figure, np.ndarray]:
    """Return a figure of one panel a task and its axes [row, column].

    ``draw(ax, task)`` is called for each task, an index from 0. A panel shows [-3, 3] squared; its
    title is "task 1" and so on, unless ``draw`` sets one on the left.
    """
    rows = -(-num_tasks // columns)
    size = (7.5, 1.42 * rows)
    fig, axes = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    for task, ax in enumerate(axes.flat):
        if task >= num_tasks:
            ax.set_axis_off()
            continue
        draw(ax, task)
        ax.set(
            xlim=(-LIMIT, LIMIT),
            ylim=(-LIMIT, LIMIT),
            xticks=[-2, 0, 2],
            yticks=[-2, 0, 2],
            aspect="equal",
        )
        ax.tick_params(labelsize=7, length=2)
        ax.set_title(ax.get_title(loc="left") or f"task {task + 1}", fontsize=8, pad=2)
    return fig, axes


def reliability(
    ax: Axes, calibration: Calibration, label: str, colour: str, marker: str = "o"
) -> None:
    """Draw frequency against confidence, bars of two standard errors, and the diagonal of
    calibration.

    Args:
        ax: what is drawn on.
        calibration: from ``metrics.calibration_error``.
        label: name in the legend.
        colour: of line and bars.
        marker: Matplotlib's.
    """
    ax.plot([0, 1], [0, 1], color=TRUTH, linewidth=0.8, linestyle="--", zorder=0)
    points, bars = (calibration.confidence, calibration.frequency), 2 * calibration.standard_error
    ax.errorbar(*points, bars, color=colour, marker=marker, label=label, linewidth=1.2)
    ax.set(
        xlabel="predicted probability of class 1",
        ylabel="frequency of class 1",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    ax.set_aspect("equal")
