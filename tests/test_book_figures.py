"""Figures for the dark theme: what is grey turns round, what is a map stays as it is."""

import io
import re
import xml.etree.ElementTree as ET

import book_figures
import matplotlib.pyplot as plt
import numpy as np
import pytest
from chapters import ROOT
from matplotlib import rc_params_from_file
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

PAGE = "#14171c"  # the dark theme's ground, assets/face.css


def drawn(figure):
    """Return a figure as the SVG that a chapter stores."""
    text = io.StringIO()
    with plt.rc_context({"svg.fonttype": "path"}):
        figure.savefig(text, format="svg")
    return text.getvalue()


def part(root, name):
    """Return the group of a name."""
    return next(one for one in root.iter() if one.get("id") == name)


def colours(element):
    """Return all colours that an element and what is in it say."""
    return {
        found
        for one in element.iter()
        for found in re.findall("#[0-9a-f]{6}", one.get("style", "") + (one.get("fill") or ""))
    }


def luminance(colour):
    """Return the relative luminance of #rrggbb, by WCAG 2."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    """Return the contrast of two colours, by WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(params=["cells", "picture"])
def two(request):
    """Return a figure with a plot of lines and a map, each with a text within and a title."""
    figure = Figure(figsize=(6, 3))
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], color="black")
    left.text(0.5, 0.5, "within", color="#333333")
    values = np.arange(4.0).reshape(2, 2)
    if request.param == "cells":
        right.pcolormesh(values, cmap="RdBu")
    else:
        right.imshow(values, extent=(0, 2, 0, 2))
    right.plot([0, 1.8], [0.2, 1.8], color="black")  # from the edge, as contours are
    right.text(1, 1, "within")
    right.set_title("a map")
    return figure


def test_a_plot_of_lines_has_no_ground_and_light_lines(two):
    root = ET.fromstring(book_figures.dark(drawn(two)))
    assert part(root, "patch_1")[0].get("style") == "fill: none"
    plot = part(root, "axes_1")
    assert part(plot, "patch_2")[0].get("style") == "fill: none"
    said = colours(plot)
    assert said and all(contrast(colour, PAGE) > 4.5 for colour in said)
    assert contrast(part(root, "figure_1").get("fill"), PAGE) > 4.5


def test_a_plot_without_axes_keeps_its_letters_and_boxes():
    figure = Figure(figsize=(3, 3))
    axes = figure.subplots()
    axes.axis("off")
    axes.text(0.5, 0.5, "boxed", bbox={"facecolor": "white", "edgecolor": "black"})
    before, after = drawn(figure), book_figures.dark(drawn(figure))
    glyphs = [re.findall('<path id="[^"]*" d="[^"]*" transform', text) for text in (before, after)]
    assert len(glyphs[0]) == len(set("boxed")) and len(glyphs[1]) == len(glyphs[0])
    assert after.count("fill: none") <= before.count("fill: none") + 1  # the figure's ground


def test_a_map_keeps_its_ground_and_what_lies_on_it(two):
    before = ET.fromstring(drawn(two))
    after = ET.fromstring(book_figures.dark(drawn(two)))
    plots = [part(root, "axes_2") for root in (before, after)]
    kinds = [[one.get("id", "picture").rpartition("_")[0] for one in plot] for plot in plots]
    assert kinds[0] == kinds[1] and {"line2d", "text", "patch"} <= set(kinds[0])
    title, *texts = [one for one in plots[1] if one.get("id", "").startswith("text_")][::-1]
    for kind, old, new in zip(kinds[0], *plots, strict=True):
        if kind in ("QuadMesh", "line2d"):
            assert colours(old) <= colours(new) <= colours(old) | {"#000000"}
        if kind == "matplotlib.axis":
            assert all(contrast(colour, PAGE) > 4.5 for colour in colours(new))
    assert title.get("fill") is None  # it takes the figure's light one
    assert [one.get("fill") for one in texts] == ["#000000"]
    assert plots[0][0][0].get("style") == plots[1][0][0].get("style")


def test_the_order_of_greys_turns_and_that_of_a_hue_stays():
    greys = [f"#{level:02x}{level:02x}{level:02x}" for level in range(0, 256, 5)]
    assert np.all(np.diff([luminance(book_figures.turned(grey)) for grey in greys]) < 0)
    blues = [f"#{level // 4:02x}{level // 2:02x}{level:02x}" for level in range(40, 256, 5)]
    assert np.all(np.diff([luminance(book_figures.turned(blue)) for blue in blues]) > 0)
    style = rc_params_from_file(ROOT / "helpers/book.mplstyle", use_default_template=False)
    for colour in style["axes.prop_cycle"].by_key()["color"]:
        assert contrast(book_figures.turned(to_hex(colour)), PAGE) > 3


def test_other_pictures_are_left_alone():
    assert book_figures.dark('<svg xmlns="http://www.w3.org/2000/svg"><g id="a"/></svg>') is None


def test_each_picture_of_a_page_is_offered_in_both_themes(tmp_path, two):
    class Application:
        outdir = tmp_path
        builder = type("Builder", (), {"format": "html"})

    (tmp_path / "_images").mkdir()
    (tmp_path / "_images/a.svg").write_text(drawn(two))
    page = tmp_path / "page.html"
    page.write_text('<img alt="a" src="_images/a.svg" /><img alt="b" src="_images/b.png" />')
    for work in ("lighten_figures", "darken_figures", "place_figures"):
        getattr(book_figures, work)(Application, None)
    assert sorted(path.name for path in page.parent.glob("_images/*")) == ["a-dark.svg", "a.svg"]
    first, second = page.read_text().split("</picture>")
    assert second == '<img alt="b" src="_images/b.png" />'
    assert 'srcset="_images/a-dark.svg" media="(prefers-color-scheme: dark)"' in first
    assert 'width="576" height="288" alt="a" src="_images/a.svg" />' in first
