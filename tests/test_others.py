"""The benchmark beside other libraries: its table, its clock, its density, and what is stored of
it.
"""

from helpers import densities, hierarchical, mcmc, networks

import json
import re

import jax
import numpy as np
import pytest
from chapters import ROOT

from benchmarks.others import __main__ as others
from benchmarks.others import flat, judge, parts, posterior, session, table

FOLDER = ROOT / "benchmarks/others"
HEAD = "| sampler | seconds to 400 |"


def figures(ess, within=True):
    """A verdict's figures."""
    found = {
        "ess": ess,
        "median_ess": 2 * ess,
        "rhat": 1.01,
        "rhat_log_sd": 1.01,
        "rhat_within_bound": within,
    }
    return {**found, "reached": within and ess >= judge.TARGET}


def point(seconds, ess, within=True, mode=(2, 2, 2, 2), kept=None):
    """A verdict at a checkpoint."""
    return {
        "draws": 250,
        "seconds": seconds,
        "compiling": 2.0,
        "warm_up": 1.0,
        "diverging": [0, 0, 1, 0],
        "log_density": [-1000.0] * 4,
        "mode": list(mode),
        "found_after": [3.0 if layer == 2 else None for layer in mode],
        "kept_chains": [layer == 2 for layer in mode],
        "all_chains": figures(ess, within),
        "of_kept": kept or figures(ess, within),
    }


def made_run(rival, seed, *points, limit=100.0):
    """A run as it is kept."""
    censored = not points[-1]["all_chains"]["reached"] or points[-1]["seconds"] > limit
    fixed = {
        "machine": {"processor": "a processor", "cores": 2},
        "versions": {"jax": "0"},
        "load_before": 0.1,
    }
    return {
        "rival": rival,
        "seed": seed,
        "limit": limit,
        "censored": censored,
        "checkpoints": list(points),
        **fixed,
    }


@pytest.fixture
def runs():
    """Three runs of a rival that gets there, and three of one that mostly does not."""
    return [
        made_run("quick", 0, point(5.0, 300), point(10.0, 500)),
        made_run("quick", 1, point(6.0, 420)),
        made_run("quick", 2, point(8.0, 480)),
        made_run("slow", 0, point(50.0, 100), point(90.0, 200)),
        made_run("slow", 1, point(60.0, 900, within=False, mode=(2, 2, 0, 2), kept=figures(700))),
        made_run("slow", 2, point(80.0, 400)),
    ]


def test_a_run_is_read_at_the_first_checkpoint_that_suffices(runs):
    found = table.read(runs[0], "all_chains")
    assert not found["censored"] and found["seconds"] == 10.0 and found["draws"] == 250
    np.testing.assert_allclose(
        [found["ess_a_second"], found["ess_a_second_running"]], [50.0, 500 / 8]
    )


def test_what_was_reached_beyond_the_limit_was_not_reached():
    late = made_run("late", 0, point(150.0, 500))
    assert late["censored"] and table.read(late, "all_chains")["censored"]


def test_a_run_that_never_came_to_a_checkpoint_is_censored(runs):
    fixed = {name: runs[0][name] for name in ("machine", "versions", "load_before")}
    nothing = {
        "rival": "stuck",
        "seed": 0,
        "limit": 100.0,
        "censored": True,
        "checkpoints": [],
        **fixed,
    }
    assert table.read(nothing, "of_kept")["censored"] and "given up" in table.line(nothing)
    assert "| stuck | not within 100 (0 of 1 runs) |" in table.of_runs([*runs, nothing])


def test_a_median_of_seconds_is_printed_only_where_most_runs_reached_it(runs):
    stored = table.result(runs, "2026-01-31")
    quick, slow = (stored["rivals"][name]["all_chains"] for name in ("quick", "slow"))
    assert (quick["censored"], slow["censored"]) == (0, 2)
    assert table.seconds(quick, 100.0) == "8 (6 to 10)" and table.times(quick, 100.0, 8.0) == "1"
    assert table.seconds(slow, 100.0) == "not within 100 (1 of 3 runs)"
    assert table.times(slow, 100.0, 8.0) == "more than 12.5"
    one_mode = stored["rivals"]["slow"]["of_kept"]
    assert (
        one_mode["censored"] == 1 and table.seconds(one_mode, 100.0) == "80 (from 60; 2 of 3 runs)"
    )


def test_the_table_has_a_row_a_rival_and_says_where_chains_ended(runs):
    lines = table.of_runs(runs).splitlines()
    assert (
        lines[0].startswith(HEAD)
        and len(lines) == 4
        and len({line.count("|") for line in lines}) == 1
    )
    assert lines[2].startswith("| quick | 8 (6 to 10) |") and lines[2].endswith("| 12 of 12 |")
    assert lines[3].startswith("| slow |") and lines[3].endswith("| 11 of 12 |")


def test_without_runs_there_is_no_table():
    assert table.of_runs([]) == "no runs"


def test_runs_of_two_machines_make_no_table(runs):
    other = {**runs[1], "machine": {"processor": "another", "cores": 2}}
    with pytest.raises(ValueError, match="machine: given runs of several, expected one"):
        table.result([runs[0], other], "2026-01-31")


def test_what_is_stored_is_what_the_readme_prints_and_nothing_is_printed_that_is_not_stored():
    texts = [(ROOT / name).read_text() for name in ("README.md", "benchmarks/README.md")]
    if not table.STORED.exists():
        assert not any(HEAD in text for text in texts)
        assert "not measured yet" in texts[1]
        return
    stored = json.loads(table.STORED.read_text())
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", stored["date"]) and stored["machine"]["cores"] == 2
    assert set(table.PACKAGES) == set(stored["versions"])
    for one in stored["rivals"].values():
        for which in table.FIGURES:
            assert one[which]["runs"] == len(one["seeds"]) == len(one[which]["by_seed"])
            assert one[which]["censored"] == sum(run["censored"] for run in one[which]["by_seed"])
    assert (
        table.of_result(stored, table.IN_SHORT) in texts[0] and table.of_result(stored) in texts[1]
    )
    assert table.of_ratios(stored) in texts[1]
    assert stored["date"] in texts[0] and stored["machine"]["processor"].split(" (")[0] in texts[0]


def test_flat_fits_and_steps_that_are_stored_are_what_the_readme_prints():
    text, stored = (ROOT / "benchmarks/README.md").read_text(), json.loads(parts.STORED.read_text())
    assert parts.of_flat(stored) in text and parts.of_steps(stored) in text
    assert stored["machine"] == json.loads(table.STORED_FIXED.read_text())["machine"]
    assert all(run["rhat_within"] == 1 for runs in stored["flat"].values() for run in runs)


def test_seconds_at_fixed_bounds_that_are_stored_are_what_the_readme_prints():
    text, stored = (
        (ROOT / "benchmarks/README.md").read_text(),
        json.loads(table.STORED_FIXED.read_text()),
    )
    assert table.of_fixed(stored) in text and stored["date"] in text
    assert set(stored["rivals"]) == set(others.FIXED)
    assert stored["machine"]["processor"].split(" (")[0] in text


def test_a_run_is_read_by_a_fixed_bound_of_r_hat_where_it_told_the_largest(runs):
    assert table.at_fixed(runs[:3]) == {}
    early, late = figures(500) | {"rhat_largest": 1.03}, figures(900) | {"rhat_largest": 1.009}
    points = [point(10.0, 500) | {"all_chains": early}, point(20.0, 900) | {"all_chains": late}]
    found = table.at_fixed([made_run("told", 0, *points)])
    seconds = {name: one["seconds"]["median"] for name, one in found.items()}
    assert seconds == {"all_chains, 1.05": 10.0, "all_chains, 1.01": 20.0}


def test_anyones_flat_density_is_the_books():
    weights = [
        jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(posterior.SHAPES)
    ]
    x, y = jax.random.normal(jax.random.key(3), (7, 2)), np.array([0, 1, 1, 0, 1, 0, 0])
    labels = y.astype(np.float32)
    params = {"params": {f"Dense_{i}": {"kernel": weight} for i, weight in enumerate(weights)}}
    ours = densities.flat_log_density(networks.MLP())(params, densities.observe(x, y, np.ones(3)))
    constant = 0.5 * sum(weight.size for weight in weights) * np.log(2 * np.pi)
    np.testing.assert_allclose(flat.log_density(weights, x, labels) - constant, ours, rtol=1e-5)


def test_numpys_density_and_predictions_are_the_books():
    vectors = posterior.random_vectors(5).astype(np.float32)
    draws = posterior.split(vectors)
    assert {name: values.shape[1:] for name, values in draws.items()} == posterior.shapes()
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(18, 7, 2)).astype(np.float32), rng.integers(0, 2, (18, 7))
    layers = [f"Dense_{i}" for i in range(3)]
    positions = {
        name: {layer: {"kernel": draws[f"{name}_{i}"]} for i, layer in enumerate(layers)}
        for name in ("mean", "offset")
    }
    positions["log_sd"] = {layer: draws["log_sd"][:, i] for i, layer in enumerate(layers)}
    network = networks.MLP()
    assert jax.tree.map(
        np.shape, mcmc.normal_starts(jax.random.key(0), hierarchical.shapes(network, 18, 2), (5,))
    ) == (jax.tree.map(np.shape, positions))
    seen, density = densities.observe(x, y), hierarchical.log_density(network)
    expected = jax.lax.map(lambda position: density(position, seen), positions)
    np.testing.assert_allclose(posterior.log_density(draws, x, y), expected, rtol=1e-5)
    expected = jax.lax.map(
        lambda position: jax.nn.sigmoid(hierarchical.logits(network)(position, x)), positions
    )
    np.testing.assert_allclose(
        posterior.probabilities(draws, x), expected.reshape(5, -1), atol=1e-5
    )


def test_the_time_to_find_the_mode_is_that_after_which_a_chain_stays():
    one = judge.Judge(None)
    one.stretches = [(0, 10, 5.0, 15.0), (10, 20, 15.0, 35.0)]
    inside = np.full(20, True)
    assert one.found_after(inside) == 5.0  # the end of warm-up
    inside[13] = False
    assert one.found_after(inside) == 15.0 + 20.0 * 4 / 10
    inside[-1] = False
    assert one.found_after(inside) is None


def test_the_clock_counts_overlapping_compilations_once_and_those_of_later_batches_apart():
    one = object.__new__(session.Session)
    one._compiled, one._last_that_counts = (
        [(0.0, 2.0), (1.0, 3.0), (1.5, 1.7), (5.0, 6.0), (9.0, 11.0)],
        8.0,
    )
    assert one._seconds(True) == 4.0 and one._seconds(False) == 2.0


def test_the_second_environment_is_locked_at_the_books_versions():
    asked = (FOLDER / "requirements.in").read_text()
    locked, books = ((path / "requirements.txt").read_text() for path in (FOLDER, ROOT))
    names = re.findall(r"^([a-z-]+)", asked, flags=re.M)
    for name in names:
        assert re.search(rf"^{name}==\S+.* \\\n    --hash=sha256:", locked, flags=re.M), name
    for name, version in re.findall(r"^([a-z-]+)==(\S+)$", asked, flags=re.M):
        assert f"\n{name}=={version} " in locked and f"\n{name}=={version} " in books, name
