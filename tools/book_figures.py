"""Sphinx extension: figures are light to load, sized before they arrive, and at home in the dark.

Each figure is stored twice, drawn once: beside NAME.svg lies NAME-dark.svg, without its ground and
with the greys turned round. A map keeps its ground and what lies on it, since its colours are what
the caption speaks of.
"""

import base64
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from PIL import Image

SVG = "{http://www.w3.org/2000/svg}"
ET.register_namespace("", SVG[1:-1])
ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
MAPS = ("QuadMesh", "QuadContourSet")
BESIDE = ("text", "legend", "patch")  # what may lie beside a map: titles, keys, the frame
# Greys from black to white become those from light to dark: text 0.90, the page's ground 0.09.
LIGHTEST, DARKEST = 0.90, 0.09
GROUND = "fill: #ffffff"  # of a plot; what has an outline is no ground
NUMBER = r"(-?[\d.]+(?:e-?\d+)?)"
PLACES = (rf"\bM {NUMBER} {NUMBER}", rf"translate\({NUMBER} {NUMBER}\)")


def lighten_figures(app, exception):
    """Store the pictures within figures as WebP, a seventh of the size, and lines to a hundredth of
    a point.
    """

    def fewer(match):
        picture = io.BytesIO()
        with Image.open(io.BytesIO(base64.b64decode(match[1]))) as image:
            image.save(picture, "WEBP", quality=95)  # off by 1.6 of 255 on average
        return min(
            match[0],
            f'"data:image/webp;base64,{base64.b64encode(picture.getvalue()).decode()}"',
            key=len,
        )

    for path in Path(app.outdir, "_images").glob("*.svg"):
        text = re.sub(r'"data:image/png;base64,([^"]*)"', fewer, path.read_text())
        path.write_text(
            re.sub(
                r' (?:d|x|y)="[^"]*"', lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), text
            )
        )


def turned(colour):
    """Return a colour, #rrggbb, for a dark ground: greys turned round, others paler the darker they
    are, so that an order by lightness stays one.
    """
    red, green, blue = parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    light = (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255
    if max(parts) - min(parts) <= 12:
        parts = [255 * (LIGHTEST + (DARKEST - LIGHTEST) * light)] * 3
    else:
        parts = [part + 0.35 * (1 - light) * (255 - part) for part in parts]
    return "#" + "".join(f"{round(part):02x}" for part in parts)


def turn(element):
    """Turn the colours of an element and of all within."""
    for one in element.iter():
        if style := one.get("style"):
            one.set("style", re.sub(r"#[0-9a-f]{6}\b", lambda found: turned(found[0]), style))


def places(element):
    """Return the places [x, y] where the strokes and texts of an element begin."""
    found = []
    for one in element.iter():
        for name, pattern in zip(("d", "transform"), PLACES, strict=True):
            found += re.findall(pattern, one.get(name, ""))[:1]
        if one.tag == f"{SVG}use" and one.get("x"):
            found.append((one.get("x"), one.get("y")))
    return [(float(x), float(y)) for x, y in found]


def is_filled(element, name):
    """Return whether this is a map: a picture, or coloured cells or contours."""
    if name in MAPS:
        return any("fill: #" in one.get("style", "") for one in element.iter())
    return any(True for _ in element.iter(f"{SVG}image"))


def turn_axes(axes):
    """Turn one plot: all of it and no ground, or of a map what lies outside."""
    grounds = [path for path in axes.iterfind(f"{SVG}g/{SVG}path") if path.get("style") == GROUND]
    names = [one.get("id", "").rpartition("_")[0] for one in axes]
    if not any(is_filled(one, name) for one, name in zip(axes, names, strict=True)):
        for path in grounds[:1]:
            path.set("style", "fill: none")
        return turn(axes)
    corners = re.findall(f"{NUMBER} {NUMBER}", grounds[0].get("d")) if grounds else [(0, 0)]
    columns, rows = zip(*[map(float, corner) for corner in corners], strict=True)
    for one, name in zip(axes, names, strict=True):
        within = any(
            min(columns) < x < max(columns) and min(rows) < y < max(rows) for x, y in places(one)
        )
        beside = name in BESIDE and not within and one.find(f"{SVG}path") not in grounds
        if name == "matplotlib.axis" or beside:
            turn(one)
        else:
            one.set("fill", "#000000")  # of texts that say no colour


def dark(text):
    """Return a figure of Matplotlib, as SVG, for a dark ground; of any other SVG nothing."""
    root = ET.fromstring(text)
    figure = next((one for one in root.iter(f"{SVG}g") if one.get("id") == "figure_1"), None)
    if figure is None:
        return None
    figure.set("fill", turned("#000000"))
    for one in figure:
        name = one.get("id", "")
        if name == "patch_1":  # the ground of all
            one.find(f"{SVG}path").set("style", "fill: none")
        elif name.startswith("axes_"):
            turn_axes(one)
        else:
            turn(one)
    return ET.tostring(root, encoding="unicode")


def darken_figures(app, exception):
    """Store each figure for the dark theme, too."""
    if app.builder.format != "html":
        return
    for path in sorted(Path(app.outdir, "_images").glob("*.svg")):
        if not path.stem.endswith("-dark") and (text := dark(path.read_text())):
            path.with_stem(f"{path.stem}-dark").write_text(text)


def place_figures(app, exception):
    """Say how large figures are before they arrive, so that the text below does not move when they
    do; and offer each in both themes: site.js says which when a reader has chosen.
    """
    sizes = {}
    for path in Path(app.outdir, "_images").glob("*.svg"):
        if size := re.search(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"', path.read_text()):
            sizes[path.name] = [round(float(points) * 4 / 3) for points in size.groups()]

    def placed(match):
        before, folder, name, after = match.groups()
        if name not in sizes:
            return match[0]
        width, height = sizes[name]
        image = f'<img width="{width}" height="{height}"{before}{folder}{name}{after}'
        other = f"{name.removesuffix('.svg')}-dark.svg"
        if other not in sizes:
            return image
        address = folder.rpartition('"')[2] + other
        source = f'<source srcset="{address}" media="(prefers-color-scheme: dark)" />'
        return f"<picture>{source}{image}</picture>"

    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text()
        pattern = r'<img((?:(?! width=)[^>])*?)(src="[^"]*_images/)([^"/]+)("[^>]*>)'
        path.write_text(re.sub(pattern, placed, text))


def setup(app):
    """Register."""
    for work in (lighten_figures, darken_figures, place_figures):
        app.connect("build-finished", work)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
