"""Claims survive what their numbers are uncertain by: each is held again on moved numbers."""

import importlib
from pathlib import Path

from tests.claims import moved, said

NUM_MOVES = 50


def all_claims():
    """Import the claims of every page, and return them."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        importlib.import_module(f"tests.claims.{path.stem}")
    return said.CLAIMS


def fallen(claims, num_moves, seed, monkeypatch):
    """How often each claim fell of ``num_moves`` times, and what it said last."""
    numbers, found = moved.Moved(seed), {}
    for module in moved.readers():
        monkeypatch.setattr(module, "read_result", numbers.read)
    for _ in range(num_moves):
        numbers.move()
        for name, claim in claims.items():
            try:
                claim.holds()
            except AssertionError as error:
                count, _ = found.get(name, (0, ""))
                found[name] = count + 1, str(error).split("\n")[0]
    return found


def test_no_claim_falls_more_often_than_it_says(monkeypatch):
    claims = all_claims()
    found = fallen(claims, NUM_MOVES, 1, monkeypatch)
    too_often = {
        name: (count, last)
        for name, (count, last) in found.items()
        if count > claims[name].falls * NUM_MOVES
    }
    assert too_often == {}
