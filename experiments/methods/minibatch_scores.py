"""Scores of minibatch samplers, whether their chains have mixed, and the rows of a result."""

from helpers import diagnostics, metrics

from typing import Any

import numpy as np
from jaxtyping import Array, Float

from experiments.methods import total_variation

# share by which the spread of predictions may be off, if a sampler is to sample the posterior
SPREAD = 0.1


def effective(p: Float[np.ndarray, "chain draw point"]) -> float:
    """Return effective draws of predictions, the least over points, all chains together."""
    found = diagnostics.summarize(p)
    return float(np.minimum(found.ess_bulk, found.ess_tail).min())


def gate(
    p: Float[np.ndarray, "chain draw point"], log_density: Float[np.ndarray, "chain draw"]
) -> dict:
    """Diagnose predictions and log density: what is nearest to its bound, and whether mixed.

    ``ess`` is the least of bulk and tail, all chains together, predictions and log density;
    ``ess_of_predictions`` that of predictions.
    """
    found = diagnostics.of_quantities({"predictions": p, "log density": log_density})
    nearest = np.argmax(found.rhat - found.rhat_bound)
    of_kinds = np.minimum(found.ess_bulk, found.ess_tail)
    return {
        "rhat": float(found.rhat[nearest]),
        "rhat_bound": float(found.rhat_bound[nearest]),
        "ess": float(of_kinds.min()),
        "ess_of_predictions": float(of_kinds[0]),
        "mixed": found.ok,
    }


def scored(p: Float[np.ndarray, "chain draw point"], y: Array) -> dict:
    """NLL and calibration of the mean prediction at fresh points, the NLL's Monte Carlo error."""
    found = metrics.scores(p.mean(axis=(0, 1)), y)
    kept = {
        "nll": found["NLL"],
        "accuracy": found["accuracy %"],
        "calibration": found["calibration error"],
    }
    return kept | {"nll_error": diagnostics.nll_error(p, y)}


def spread(p: Float[np.ndarray, "chain draw point"]) -> float:
    """Standard deviation of p over draws, mean over points: what the weights leave open."""
    return float(p.reshape(-1, p.shape[-1]).std(axis=0, dtype=np.float64).mean())


def rounded(values: Any) -> list:
    """Return numbers for JSON."""
    return np.asarray(values, np.float64).round(6).tolist()


def short(run: dict) -> dict:
    """Return what is kept of a run of tuning."""
    return {"p_of_chains": rounded(run["p_of_chains"]), "ess_of_predictions": effective(run["p"])}


def row(
    name: str,
    seeds: list[dict],
    reference: dict,
    settings: list[float] | None = None,
    step_sizes: list[float] | None = None,
    limit: float = total_variation.LIMIT,
) -> dict:
    """Return a sampler's row, lists by seed: curves, chosen steps, long runs, what the limits say.

    It is near the posterior if the 95 % interval of its distance over seeds ends below the limit,
    keeps the spread of predictions if the interval of that, as a share of the reference's, lies
    within ``SPREAD`` of 1, and samples the posterior if it does both and its chains have mixed in
    every seed.

    Args:
        seeds: what ``score`` kept of each seed.
        reference: what it kept of the long run on all data.
        settings, step_sizes: the grid, in the places that ``chosen`` names; none: not tuned.
        limit: total variation below which the interval over seeds has to end.
    """
    found, truth = (
        {"name": name, "gradients": [one["gradients"] for one in seeds]},
        np.array(reference["p_of_chains"]),
    )
    if step_sizes:
        found["curves"] = {
            f"{given:g}": curve(f"{given:g}", step_sizes, seeds, truth) for given in settings
        }
        chosen, found["seconds"] = (
            [one["chosen"] for one in seeds],
            [one["seconds"] for one in seeds],
        )
        found["given"] = [settings[i] if i >= 0 else -1.0 for i, _ in chosen]
        found["step_size"] = [step_sizes[i] if i >= 0 else -1.0 for _, i in chosen]
    runs = [one for one in seeds if "p_of_chains" in one]
    found["seeds_with_a_run"] = [one["seed"] for one in runs]
    if len(runs) < 2:
        return found | {"near": False, "keeps_spread": False, "samples": False}
    of_chains = [np.array(one["p_of_chains"]) for one in runs]
    tv, chance = zip(
        *(total_variation.distance(chains, truth) for chains in of_chains), strict=True
    )
    together = total_variation.distance(np.concatenate(of_chains), truth)
    found |= {
        "tv": tv,
        "tv_chance": chance,
        "tv_together": together[0],
        "tv_together_chance": together[1],
    }
    names = ("nll", "nll_error", "accuracy", "calibration", "spread")
    names += (
        ("rhat", "rhat_bound", "ess", "ess_of_predictions", "mixed") if "ess" in runs[0] else ()
    )
    found |= {entry: [one[entry] for one in runs] for entry in names}
    found["spread_ratio"] = [one["spread"] / reference["spread"] for one in runs]
    every = len(runs) == len(seeds)
    (mean, half), (ratio, off) = metrics.interval(tv), metrics.interval(found["spread_ratio"])
    found["near"] = bool(every and mean + half <= limit)
    found["keeps_spread"] = bool(every and abs(ratio - 1) + off <= SPREAD)
    return found | {
        "samples": found["near"] and found["keeps_spread"] and all(found.get("mixed", [False]))
    }


def curve(
    given: str, step_sizes: list[float], seeds: list[dict], truth: Float[np.ndarray, "chain point"]
) -> list:
    """Return, by step size, distances of each seed and of all chains; none if none is finite."""

    def at(size):
        runs = [run for one in seeds if (run := one["tuning"][given].get(f"{size:g}"))]
        if not runs:
            return {"step_size": size, "finite": 0}
        of_chains = [np.array(run["p_of_chains"]) for run in runs]
        tv, chance = zip(
            *(total_variation.distance(chains, truth) for chains in of_chains), strict=True
        )
        together = total_variation.distance(np.concatenate(of_chains), truth)
        found = {
            "tv": tv,
            "tv_chance": chance,
            "tv_together": together[0],
            "tv_together_chance": together[1],
        }
        effective_draws = [run["ess_of_predictions"] for run in runs]
        return {
            "step_size": size,
            "finite": len(runs),
            **found,
            "ess_of_predictions": effective_draws,
        }

    return [at(size) for size in step_sizes]
