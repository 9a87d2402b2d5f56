"""Who and what the book is, as pyproject.toml says: how it is cited, and what the site says of
itself.

    python tools/book_identity.py       writes CITATION.cff, and the BibTeX of the README

As a Sphinx extension it gives the pages their title, authors, footer and meta tags, and the prose
what it writes as ``{{ citation }}``, ``{{ bibtex }}`` and ``{{ pip_install }}``.
"""

import re
import tomllib
from html import escape
from urllib.parse import urljoin

import yaml
from chapters import ROOT
from sources import PROJECT, WHEEL, site_address

BOOK = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["book"]
AUTHORS = [author["name"] for author in PROJECT["authors"]]
CITED_AT = "book/short-answers", "short-cite"  # page and label of the passage on citing
OFFER = "<!-- the book as PDF -->"  # tools/pdf.py puts a link behind it, once there is a PDF
BLOCK = re.compile(r"(?<=```bibtex\n).*?(?=\n```)", flags=re.S)


def released(changes: str) -> str:
    """Return the date of the version, as the first heading of the list of changes has it.

    ValueError: the first heading is not of this version, or has no date.
    """
    first = re.search(r"^## (.*)$", changes, flags=re.M)
    found = first and re.fullmatch(r"(\S+), (\d{4}-\d\d-\d\d)", first[1])
    if not found or found[1] != PROJECT["version"]:
        given = first[1] if first else "no heading"
        raise ValueError(
            f"CHANGELOG.md: given {given!r} first, expected {PROJECT['version']!r} and a date"
        )
    return found[2]


DATE = released((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def citation_file(site: str, repository: str) -> str:
    """Return CITATION.cff, in the Citation File Format 1.2.0; addresses only where they are
    known.
    """
    addresses = {"url": site, "repository-code": repository}
    about = {
        "cff-version": "1.2.0",
        "message": "If you use this book or its code, please cite the version that you used.",
        "type": "software",
        "title": f"{BOOK['title']}: {BOOK['subtitle']}",
        "authors": [{"name": name} for name in AUTHORS],
        "version": PROJECT["version"],
        "date-released": DATE,
        "abstract": f"{PROJECT['description']}.",
        "keywords": PROJECT["keywords"],
        "license": PROJECT["license"],
        **{key: address for key, address in addresses.items() if address},
    }
    text = yaml.safe_dump(about, sort_keys=False, allow_unicode=True, width=100)
    return f"# Written from pyproject.toml by tools/book_identity.py; do not edit.\n{text}"


def citation() -> str:
    """Return how the book is cited, in Markdown."""
    title = f"*{BOOK['title']}: {BOOK['subtitle']}*"
    return f"{', '.join(AUTHORS)} ({DATE[:4]}). {title}. Version {PROJECT['version']}."


def bibtex(site: str) -> str:
    """Return the book's entry for BibTeX; braces keep names and the title's capitals whole."""
    entry = {
        "title": f"{{{BOOK['title']}}}: {BOOK['subtitle']}",
        "author": " and ".join(f"{{{name}}}" for name in AUTHORS),
        "year": DATE[:4],
        "note": f"Version {PROJECT['version']}",
        "url": site,
    }
    lines = "".join(f"  {key:6} = {{{value}}},\n" for key, value in entry.items() if value)
    return f"@misc{{{PROJECT['name'].replace('-', '_')},\n{lines}}}"


def with_bibtex(readme: str, site: str) -> str:
    """Return the README with its entry for BibTeX as it is now.

    ValueError: the README has not exactly one block of BibTeX.
    """
    if (count := len(BLOCK.findall(readme))) != 1:
        raise ValueError(f"README.md: given {count} blocks of BibTeX, expected one")
    return BLOCK.sub(lambda _: bibtex(site), readme)


def name_site(app, config):
    """Give Sphinx what Jupyter Book would read in _config.yml, and the prose its words."""
    config.html_title = config.project = BOOK["title"]
    config.author = ", ".join(AUTHORS)
    config.copyright = DATE[:4]
    config.version = config.release = PROJECT["version"]
    site = config.html_baseurl or ""
    hint = "" if site else "\n\nAdd the address at which you read it."
    config.myst_substitutions = {
        **(config.myst_substitutions or {}),
        "citation": citation(),
        "bibtex": f"```bibtex\n{bibtex(site)}\n```{hint}",
        "pip_install": f"`pip install {WHEEL}`",
    }


def describe(app, pagename, templatename, context, doctree):
    """Tell search engines, and what shows links as cards, about a page; addresses once there is
    one.
    """
    if doctree is None:
        return
    title = re.sub(r"<[^>]*>", "", context["title"])
    about = f"{PROJECT['description']}."
    if pagename != app.config.root_doc:
        about = f"{title}: a page of {BOOK['title']}. {about}"
    card = {"type": "article", "site_name": BOOK["title"], "title": title, "description": about}
    if base := app.config.html_baseurl:
        card["url"] = urljoin(base, f"{pagename}.html")
        card["image"] = urljoin(base, "_static/case.png")
    tags = [("name", "description", about), ("name", "author", app.config.author)]
    tags += [("property", f"og:{name}", value) for name, value in card.items()]
    for kind, name, value in tags:
        context["metatags"] += f'<meta {kind}="{name}" content="{escape(value)}" />\n'


def sign(app, pagename, templatename, context, doctree):
    """Say at the foot of a page which version it is of, and where one reads how to cite it."""
    page, label = CITED_AT
    where = f"Version {PROJECT['version']}, {DATE}."
    if page in app.env.found_docs:
        where += f' <a href="{context["pathto"](page).removesuffix("#")}#{label}">How to cite</a>.'
    if doctree is not None:
        where += f" {OFFER}"
    context["theme_extra_footer"] = f"{where} {context.get('theme_extra_footer', '')}"


def setup(app):
    """Register: after ``book_site`` has found the site's address (priority 500)."""
    app.connect("config-inited", name_site, priority=600)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", sign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main() -> None:
    """Write what is derived and kept in the repository."""
    site = site_address()
    repository = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    (ROOT / "CITATION.cff").write_text(citation_file(site, repository), encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(with_bibtex(readme.read_text(encoding="utf-8"), site), encoding="utf-8")


if __name__ == "__main__":
    main()
