"""What the book is called, its version and its authors stand in pyproject.toml, and nothing says
otherwise.
"""

import re
from urllib.parse import urlparse

import book_identity
import pytest
import yaml
from book_identity import AUTHORS, BOOK, DATE, PROJECT
from chapters import ROOT
from pybtex.database import parse_string
from sources import site_address

# Of the Citation File Format 1.2.0 (citation-file-format.github.io/1.2.0/schema), for what is
# neither a list nor an object: what a value must look like.
NEEDED = {"authors", "cff-version", "message", "title"}
WORDS, ADDRESS = r".+", r"(https?|s?ftp)://.+"
KEYS = {
    "abstract": WORDS,
    "authors": list,
    "cff-version": r"1\.2\.0",
    "commit": WORDS,
    "contact": list,
    "date-released": r"\d{4}-(0[1-9]|1[012])-(0[1-9]|[12]\d|3[01])",
    "doi": r"10\.\d{4,9}(\.\d+)?/\S+",
    "identifiers": list,
    "keywords": list,
    "license": r"[A-Za-z0-9.+-]+",
    "license-url": ADDRESS,
    "message": WORDS,
    "preferred-citation": dict,
    "references": list,
    "repository": ADDRESS,
    "repository-artifact": ADDRESS,
    "repository-code": ADDRESS,
    "title": WORDS,
    "type": r"software|dataset",
    "url": ADDRESS,
    "version": WORDS,
}
GOOD = {"cff-version": "1.2.0", "message": "m", "title": "t", "authors": [{"name": "n"}]}


def faults(about):
    """Yield what a citation file has that its format does not allow, of the keys that we use."""
    yield from sorted(NEEDED - set(about))
    for key, value in about.items():
        expected = KEYS.get(key)
        if isinstance(expected, type):
            right = isinstance(value, expected) and len(value)
        else:
            right = expected and isinstance(value, str) and re.fullmatch(expected, value, re.S)
        if not right:
            yield key
    for key, kind in (("authors", dict), ("keywords", str)):
        listed = about.get(key, [])
        if any(not isinstance(one, kind) or not one for one in listed):
            yield f"{key}: {listed}"
        if any(listed.count(one) > 1 for one in listed):
            yield f"{key}: twice"
    for author in about.get("authors", []):  # an entity, which has a name and no names
        if set(author) != {"name"}:
            yield f"authors: {author}"


@pytest.mark.parametrize(
    "change",
    [
        {"title": ""},
        {"cff-version": "1.3"},
        {"cff-version": 1.2},
        {"date-released": "28.11.2026"},
        {"authors": []},
        {"authors": [{"family": "n"}]},
        {"authors": [{"name": "n"}] * 2},
        {"author": "n"},
        {"url": "example.org"},
        {"keywords": ["one", 2]},
        {"type": "book"},
    ],
    ids=str,
)
def test_a_citation_file_with_a_fault_is_found(change):
    assert list(faults(GOOD)) == []
    assert list(faults(GOOD | change))


@pytest.mark.parametrize("needed", sorted(NEEDED))
def test_a_citation_file_that_lacks_something_is_found(needed):
    assert list(faults({key: GOOD[key] for key in GOOD if key != needed})) == [needed]


def test_the_citation_file_is_valid_and_says_what_the_project_says():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    assert list(faults(found)) == []
    repository = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    made = book_identity.citation_file(site_address(), repository)
    assert text == made, "`make cite` writes CITATION.cff anew"
    assert found["version"] == PROJECT["version"] and found["license"] == PROJECT["license"]
    assert [author["name"] for author in found["authors"]] == AUTHORS


def test_addresses_are_cited_once_they_are_known():
    site, repository = "https://someone.github.io/it/", "https://github.com/someone/it"
    unknown, known = (
        yaml.safe_load(book_identity.citation_file(*addresses))
        for addresses in (("", ""), (site, repository))
    )
    assert known == unknown | {"url": site, "repository-code": repository}
    assert list(faults(known)) == [] and not {"url", "repository-code"} & set(unknown)
    assert f"url    = {{{site}}}" in book_identity.bibtex(site)
    assert "url" not in book_identity.bibtex("")


def test_bibtex_reads_the_entry_as_it_is_meant():
    (entry,) = parse_string(book_identity.bibtex("https://example.org/"), "bibtex").entries.values()
    plain = {key: value.replace("{", "").replace("}", "") for key, value in entry.fields.items()}
    assert plain == {
        "title": f"{BOOK['title']}: {BOOK['subtitle']}",
        "year": DATE[:4],
        "note": f"Version {PROJECT['version']}",
        "url": "https://example.org/",
    }
    assert [str(person).strip("{}") for person in entry.persons["author"]] == AUTHORS
    assert urlparse(entry.fields["url"]).hostname


def test_the_readme_and_the_first_page_say_what_the_project_says():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == book_identity.with_bibtex(readme, site_address()), "`make cite`"
    title, about, *_ = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", readme).split("\n\n")
    assert title == f"# {BOOK['title']}"
    assert " ".join(about.split()).startswith(f"{PROJECT['description']}. ")
    assert f"\n# {BOOK['title']}\n" in (ROOT / "book/index.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="expected one"):
        book_identity.with_bibtex("none", "")


def test_the_list_of_changes_begins_with_this_version():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert book_identity.released(changes) == DATE
    for wrong in ("", "## 0.9.9, 2026-11-28\n", f"## {PROJECT['version']}\n"):
        with pytest.raises(ValueError, match="CHANGELOG"):
            book_identity.released(wrong + changes.replace("\n## ", "\n") * bool(wrong))


def test_the_version_is_written_nowhere_else():
    """A number that nobody changes with the version would be of another one."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert not {"title", "author", "copyright"} & set(config)
    for page in (ROOT / "book").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(rf"{PROJECT['name'].replace('-', '[-_]')}[-_:=]*\d", text), page
    job = (ROOT / "experiments/pages/scaling_out/fit.yaml").read_text()
    assert f"/{PROJECT['name']}:{PROJECT['version']}\n" in job
