"""Every test of a page names the sentences that it holds, and fails without one of them."""

import importlib
from pathlib import Path

import pytest

from tests.claims import said

RULES = "test_moved", "test_said"


def page_of(module):
    """The page whose claims a file holds; of a long page a second file has a name that goes on."""
    pages = [path.stem.replace("-", "_") for path in (said.ROOT / "book").glob("*.md")]
    named = [page for page in pages if module.startswith(f"test_{page}")]
    return max(named, key=len, default=None)


def test_a_file_holds_claims_of_its_page_alone_and_is_short():
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.stem not in RULES:
            module = importlib.import_module(f"tests.claims.{path.stem}")
            names = [name for name in vars(module) if name.startswith("test_")]
            claims = [said.CLAIMS.get(f"{module.__name__}.{name}") for name in names]
            assert names and all(claim and page_of(path.stem) in claim.pages for claim in claims)
            assert len(path.read_text().splitlines()) < 300, path.name


def test_a_claim_fails_if_its_sentence_is_no_longer_on_its_page(monkeypatch):
    monkeypatch.setattr(said, "CLAIMS", {})

    @said.says("index", "every number and\n  figure is computed", "a sentence that is not there")
    def test_one():
        pass

    with pytest.raises(AssertionError, match="index no longer says: a sentence that is not there"):
        test_one()
    assert list(said.CLAIMS) == [f"{__name__}.test_one"]


def test_a_claim_fails_if_its_numbers_do_not_hold(monkeypatch):
    monkeypatch.setattr(said, "CLAIMS", {})

    @said.says("index", "Fit, check and criticise")
    @said.says("README", "# Bayesian Neural Networks in JAX", falls=0.5)
    def test_one():
        assert not "what the numbers say"

    with pytest.raises(AssertionError, match="what the numbers say"):
        test_one()
    (claim,) = said.CLAIMS.values()
    assert claim.pages == ("README", "index") and claim.falls == 0.5
    with pytest.raises(AssertionError, match="what the numbers say"):
        claim.holds()


@pytest.mark.parametrize("sentences, test", [((), lambda: None), (("a",), lambda number: None)])
def test_what_is_no_claim_is_refused(sentences, test):
    with pytest.raises(ValueError, match="expected sentences, and a test without arguments"):
        said.says("index", *sentences)(test)
