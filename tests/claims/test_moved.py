"""Claims survive what their numbers are uncertain by: each is held again on moved numbers."""

from helpers import common

import importlib
from pathlib import Path

import numpy as np
import pytest

from experiments.engine import compare
from tests.claims import moved, reading, said

NUM_MOVES = 100
NAME = "flat_bnn/baselines"


def all_claims():
    """Import the claims of every page, and return them."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        importlib.import_module(f"tests.claims.{path.stem}")
    return said.CLAIMS


def fallen(claims, num_moves, seed, monkeypatch):
    """How often each claim fell of ``num_moves`` times, of those that did, and what it said."""
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
                found[name] = count + 1, str(error)
    return found


def test_no_claim_falls_more_often_than_it_says(monkeypatch):
    claims = all_claims()
    found = fallen(claims, NUM_MOVES, 1, monkeypatch)
    too_often = [
        name for name, (count, _) in found.items() if count > claims[name].falls * NUM_MOVES
    ]
    assert not too_often, "\n".join(f"{name}: {found[name]}" for name in too_often)


def test_a_claim_that_is_too_tight_falls_and_a_wide_one_does_not(monkeypatch):
    nll = reading.rows(NAME)["hierarchical logistic"]["nll"]
    error = reading.rows(NAME)["hierarchical logistic"]["nll_error"]

    def below(bound):
        def holds():
            assert reading.rows(NAME)["hierarchical logistic"]["nll"] < bound

        return said.Claim(holds, ("flat_bnn",), 0.0)

    claims = {"tight": below(nll), "wide": below(nll + 6 * error)}
    found = fallen(claims, 100, 2, monkeypatch)
    assert list(found) == ["tight"] and 30 < found["tight"][0] < 70


def flat(rows):
    """What stands in rows, by where it is."""
    return {"/".join(map(str, path)): leaf for path, leaf in compare._leaves(rows).items()}


@pytest.mark.parametrize("name", ["hierarchical_bnn/visits", "what_the_gain_is_made_of/turns"])
def test_numbers_with_an_error_beside_them_move_by_it_and_others_stay(name):
    stored, numbers, steps = common.read_result(name)["rows"], moved.Moved(3), []
    for _ in range(200):
        numbers.move()
        steps.append(flat(numbers.read(name)["rows"]))
    before, pairs = flat(stored), compare._pairs(stored)
    assert all(one[at] == before[at] for at in before.keys() - pairs.keys() for one in steps)
    for at, (value, error) in pairs.items():
        found = np.array([one[at] for one in steps])
        assert abs(found.mean() - value) <= 6 * error / np.sqrt(200)
        assert 0.7 * error <= found.std() <= 1.3 * error


def test_a_list_whose_first_numbers_alone_have_errors_moves_them_alone():
    part = {"p": [1.0, 2.0, 3.0], "p_error": [0.1, 0.2], "checked": True, "checked_error": None}
    assert [(key, error) for _, key, error in moved.with_errors(part)] == [(0, 0.1), (1, 0.2)]


def test_moves_of_a_result_do_not_depend_on_what_else_is_read():
    one, other = moved.Moved(4), moved.Moved(4)
    other.read("hierarchical_bnn/masses")
    for numbers in (one, other):
        numbers.move()
    assert one.read(NAME) == other.read(NAME) != common.read_result(NAME)
