"""The costs of one process and of two are measured as they run, and the model finds what it was made from."""

import numpy as np
import pytest

from experiments.scaling_out import costs


@pytest.mark.parametrize("kind", ["chains", "tasks"])
def test_a_unit_measures_one_process_and_two(monkeypatch, kind):
    monkeypatch.setattr(costs, "SETTINGS", costs.SETTINGS | {"turns": 1, "runs": 2, "seconds_a_run": 1e-3})
    seconds = costs.unit(kind, 4)["seconds"]
    assert seconds.shape == (2, 1, 2) and (seconds > 0).all() and (seconds < 1).all()


def test_the_model_finds_its_coefficients():
    a, b, c = 20.0, 0.5, 300.0
    scored = {}
    for size in costs.SETTINGS["sizes"]["tasks"]:
        seconds = 1e-6 * np.array([a + b * size, a + b * size + c])
        drawn = {"seconds": np.tile(seconds[:, None, None], (1, 3, 5))}
        scored[f"tasks {size}"] = costs.score(drawn, "tasks", size)
    *_, model = costs.rows(scored)
    found = model["a"], model["b"], model["c"]
    np.testing.assert_allclose(found, (a, b, c), rtol=1e-6)
    assert model["pays_from"] == pytest.approx((9 * c - a) / b)
    at = model["pays_from"]
    assert (a + b * at) / (a + b * at + c) == pytest.approx(0.9)
    groups, hosts = costs.SETTINGS["asked"]["groups"], costs.SETTINGS["asked"]["hosts"]
    assert model["speed_up"] == pytest.approx((a + b * groups) / (a + b * groups / hosts + 6 * c))
