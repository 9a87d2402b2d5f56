"""Slides of the course from the website that was built here: of each chapter its question, every
figure with its caption after the prediction that goes before it, and what to remember.

nbconvert makes them, by the template ``tools/slides``; reveal.js, which shows them, and the
pictures are carried along, so that a deck needs no network.
"""

import re
import shutil
from pathlib import Path

import yaml
from bs4 import BeautifulSoup
from chapters import ROOT
from nbconvert.exporters import TemplateExporter
from nbformat.v4 import new_markdown_cell, new_notebook
from sources import notebooks

SITE = ROOT / "_build/html"
TEMPLATE = ROOT / "tools/slides"
BESIDE = "shown"  # what decks show themselves by
FACE = "source-serif-4-latin-wght-normal.woff2"
PREDICTION = "Before you look", "Question"


def course(root: Path = ROOT) -> list[Path]:
    """Return the pages of the course and of its start that have figures, in the order of the table
    of contents.
    """
    parts = yaml.safe_load((root / "_toc.yml").read_text())["parts"]
    files = [
        Path(entry["file"])
        for part in parts
        if part["caption"] == "Start" or part["caption"].startswith("The course")
        for entry in part["chapters"]
    ]
    return [file for file in files if "```{glue:figure}" in (root / file).read_text()]


def inner(tag) -> str:
    """Return the HTML of a tag's content, without links: the pages are not beside a deck."""
    for link in tag.select("a.headerlink"):
        link.decompose()
    for link in tag.find_all("a"):
        link.unwrap()
    return tag.decode_contents()


def picture(figure) -> str:
    """Return a figure with its light picture, which lies beside the deck."""
    image = figure.find("img")
    image["src"] = f"{BESIDE}/{Path(image['src']).name}"
    return f"<figure>{image}\n<figcaption>{inner(figure.find('figcaption'))}</figcaption></figure>"


def slides(page: BeautifulSoup) -> list[str]:
    """Return the slides of a built page, as HTML."""
    article = page.find("article")
    title = inner(article.find("h1"))
    asked = [tag for tag in article.find_all("strong") if tag.get_text().endswith("?")]
    first = asked[0] if asked and not asked[0].find_previous("figure") else None
    question = f'<p class="ask">{inner(first.find_parent("p"))}</p>' if first else ""
    found = [f"<h1>{title}</h1>\n{question}"]
    for tag in article.select("figure, div.admonition, ol"):
        above = tag.find_previous(["h1", "h2", "h3"])
        heading = f"<h2>{inner(above)}</h2>" if above.name != "h1" else ""
        name = tag.find("p", class_="admonition-title")
        if tag.name == "figure":
            found.append(f"{heading}\n{picture(tag)}")
        elif tag.name == "div" and name and name.get_text() in PREDICTION:
            name.extract()
            found.append(f'{heading}\n<div class="ask">{inner(tag)}</div>')
        elif tag.name == "ol" and above.get_text().startswith("Looking back"):
            found.append(f"{heading}\n<ol>{inner(tag)}</ol>")
    return found


def write(site: Path, target: Path) -> list[Path]:
    """Write a deck of each chapter of the course, and what they show themselves by; return them."""
    shutil.rmtree(target, ignore_errors=True)
    beside = target / BESIDE
    beside.mkdir(parents=True)
    for name in ("reveal.js", "reveal.css", "slides.css", "LICENSE"):
        shutil.copy(TEMPLATE / name, beside)
    shutil.copy(ROOT / "assets/fonts" / FACE, beside)
    shutil.copy(site / "_static/formulas.css", beside)
    shutil.copytree(site / "_static/mathjax", beside / "mathjax")
    exporter = TemplateExporter(
        template_name="slides", extra_template_basedirs=[str(TEMPLATE.parent)]
    )
    exporter.file_extension, decks = ".html", []
    for file in course():
        page = BeautifulSoup((site / file.with_suffix(".html")).read_text(), "html.parser")
        cells = [new_markdown_cell(text) for text in slides(page)]
        title = page.find("h1").get_text().removesuffix("#")
        notebook = new_notebook(cells=cells, metadata={"title": title})
        text, _ = exporter.from_notebook_node(notebook)
        for name in set(re.findall(rf'src="{BESIDE}/([^"]+\.(?:svg|png))"', text)):
            shutil.copy(site / "_images" / name, beside)
        name = Path(notebooks()[str(file.with_suffix(""))])  # numbered as its notebook
        decks.append(target / name.with_suffix(".html"))
        decks[-1].write_text(text)
    return decks
