"""The costs of one process and of two are measured as they run, and the model finds what it was
made from.
"""

import numpy as np
import pytest

from experiments.pages.scaling_out import costs


def test_a_unit_measures_one_process_and_two(monkeypatch):
    monkeypatch.setattr(costs, "SETTINGS", costs.SETTINGS | {"turns": 2, "seconds_a_turn": 1e-3})
    seconds = costs.unit("tasks", 4, 0)["seconds"]
    assert seconds.shape == (2, 2) and (seconds > 0).all() and (seconds < 1).all()


def test_processes_that_fail_are_named(tmp_path):
    with pytest.raises(RuntimeError, match=r"none 3: processes ended with \[1\]"):
        costs.run([["experiments.pages.scaling_out.none"]], "none 3")


def test_the_model_finds_its_coefficients():
    a, b, c = 20.0, 0.5, 300.0

    def score(kind, size, start):
        seconds = 1e-6 * np.array([a + b * size, a + b * size + c])
        return costs.score({"seconds": np.tile(seconds[:, None], (1, 3))}, kind, size, start)

    *found, model = costs.rows({name: score(**setting) for name, setting in costs.units().items()})
    assert len(found) == 11 and all(len(row["one"]) == costs.SETTINGS["starts"] for row in found)
    assert found[0]["efficiency"] == pytest.approx((a + b * 1000) / (a + b * 1000 + c))
    np.testing.assert_allclose([model[name] for name in "abc"], (a, b, c), rtol=1e-6)
    at = model["pays_from"]
    assert at == pytest.approx((9 * c - a) / b) and (a + b * at) / (
        a + b * at + c
    ) == pytest.approx(0.9)
    groups, hosts = costs.SETTINGS["asked"]["groups"], costs.SETTINGS["asked"]["hosts"]
    assert model["speed_up"] == pytest.approx((a + b * groups) / (a + b * groups / hosts + 6 * c))
    assert model["largest_misfit"] < 1e-6 and model["speed_up_half"] < 1e-6
