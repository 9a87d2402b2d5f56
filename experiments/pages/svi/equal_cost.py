"""Guides tuned by one rule, Laplace's method and a short NUTS at the same number of gradients, on
the waves of guides.

Each guide is fitted from starts of every spread, under every initial scale and learning rate of one
grid, and the fit of the highest ELBO counts; no test point is asked. Laplace's method has as many
gradients, for many starts of the same spreads, of which the highest evidence by the generalised
Gauss-Newton matrix (GGN) counts. NUTS has as many, warm-up included, and in a second run as many as
one fit. Training sets, test points and the long NUTS that all are compared with are those of
``svi/guides``, by the same keys.

What is lost may be the guide's fault or the search's. So each guide is fitted from draws of the
long NUTS as well.
"""

from helpers import common, densities

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import runs
from experiments.pages.svi import equal_cost_fits, guides
from experiments.pages.svi.equal_cost_fits import SETTINGS
from experiments.problems.wave_networks import curves

LAPLACES = ["Laplace, linearised", "Laplace, GGN", "Laplace, Hessian"]
SMALL = {
    "kind": "whole",
    "redraw": 0,
    "names": ["mean-field"],
    "num_steps": 500,
    "num_starts": 5,
    "num_reference": 300,
}


def units() -> dict[str, dict]:
    """Return every redraw, with and without a gap."""
    sizes = {"names": SETTINGS["guides"], "num_steps": SETTINGS["num_steps"]}
    sizes |= {
        "num_starts": SETTINGS["laplace_starts"],
        "num_reference": SETTINGS["reference_samples"],
    }
    return {
        f"{kind}, redraw {redraw}": {"kind": kind, "redraw": redraw, **sizes}
        for kind in ("whole", "gap")
        for redraw in range(SETTINGS["num_redraws"])
    }


def unit(
    kind: str, redraw: int, names: list[str], num_steps: int, num_starts: int, num_reference: int
) -> dict:
    """Return draws of NUTS, [chain, draw], of guides' best fits and of Laplace, [draw]."""
    points = guides.wave(kind, redraw)
    observed = densities.observe(points.x_train, points.y_train, [1.0, 1.0], num_classes=None)
    key = partial(common.key, SETTINGS["seed"])
    found = {"NUTS": guides.nuts(kind, redraw, observed, num_reference)}
    for length, sizes in SETTINGS["NUTS"].items():
        found[f"NUTS, {length}"] = equal_cost_fits.short_nuts(
            key(length, kind, redraw), observed, sizes
        )
    drawn = {"params": found["NUTS"]["weights"], "log_noise": jnp.log(found["NUTS"]["noise"])}
    for name, spreads in itertools.product(
        names, (SETTINGS["start_scales"], [equal_cost_fits.OF_NUTS])
    ):
        where = partial(key, kind, redraw, name)
        found[arm_name(name, spreads[0])] = equal_cost_fits.best_fit(
            name, where, spreads, drawn, num_steps, observed
        )
    return found | equal_cost_fits.laplace(
        key("Laplace", kind, redraw), observed, drawn, num_starts, num_steps
    )


def arm_name(name, spread):
    """By what a guide's draws are found."""
    return f"{name}, from NUTS" if spread == equal_cost_fits.OF_NUTS else name


def score(
    drawn: dict,
    kind: str,
    redraw: int,
    names: list[str],
    num_steps: int,
    num_starts: int,
    num_reference: int,
) -> dict:
    """Return scores of NUTS, of its half, and of every arm, with its number of gradients."""
    points, reference = guides.wave(kind, redraw), drawn["NUTS"]
    none = {"elbo": [], "elbo_error": [], "k_hat": [], "tuning": {}}
    found = guides.score({"NUTS": reference}, kind, redraw, [], [], num_reference)
    found = {name: one | none for name, one in found.items()}
    found["NUTS"]["tuning"] = {"log_density": float(reference["stats"]["log_density"].mean())}
    x = jnp.concatenate([points.grid, points.x_test.reshape(-1, 1)])

    def thinned(run):
        f, noise = np.asarray(curves(guides.NETWORK, run["weights"], x)), run["noise"]
        thin = max(1, noise.size // SETTINGS["num_draws"])
        return f, f[:, ::thin].reshape(-1, f.shape[-1]), noise[:, ::thin].ravel()

    of_reference = thinned(reference)[1]
    for length, sizes in SETTINGS["NUTS"].items():
        short = drawn[f"NUTS, {length}"]
        run, (f, *draws) = runs.run_from(short), thinned(short)
        gradients = float(run.stats.integration_steps.sum())
        gradients += sizes["num_warmup"] * float(run.warmup.mean_steps.sum())
        # As many of the reference's draws, from all of its chains.
        fellows = of_reference[np.linspace(0, len(of_reference) - 1, len(draws[0])).astype(int)]
        more = none | {"gradients": gradients, "check": runs.diagnosis(run, f[..., :200:10])}
        found[f"NUTS, {length}"] = guides.of_draws(*draws, fellows, points) | more
    fitted = [
        arm_name(name, of) for name, of in itertools.product(names, ("", equal_cost_fits.OF_NUTS))
    ]
    for name in [*fitted, *LAPLACES]:
        arm = drawn[name]
        if name == "Laplace, linearised":
            f = np.asarray(equal_cost_fits.linearised(arm["mode"], arm["weights"], x))
        else:
            f = np.asarray(
                curves(guides.NETWORK, jax.tree.map(lambda a: a[None], arm["weights"]), x)
            )[0]
        more = none | {"check": {}}
        more |= (
            of_guide(arm, name in names, num_steps)
            if name in fitted
            else of_laplace(name, arm, num_steps, num_starts)
        )
        found[name] = guides.of_draws(f, arm["noise"], of_reference, points) | more
    return found


def of_guide(arm: dict, from_prior: bool, num_steps: int) -> dict:
    """Return what a row keeps of the fits of a guide: of which one, and what all of them took."""
    elbo = arm["elbo"]
    spreads = SETTINGS["start_scales"] if from_prior else [equal_cost_fits.OF_NUTS]
    values = [spreads, SETTINGS["init_scales"], SETTINGS["learning_rates"]]
    place = np.unravel_index(elbo.argmax(), elbo.shape)
    best = [axis[i] for axis, i in zip(values, place, strict=True)]
    # Of every fit, [spread of starts, init_scale, learning rate]; None where it failed.
    all_fits = [
        [[float(e) if np.isfinite(e) else None for e in row] for row in part] for part in elbo
    ]
    return guides.of_weights(arm["log_weights"]) | {
        "tuning": {"best": best, "elbo": all_fits},
        "gradients": elbo.size * num_steps * SETTINGS["num_particles"],
    }


def of_laplace(name: str, arm: dict, num_steps: int, num_starts: int) -> dict:
    """Return what a row keeps of Laplace's approximations: where modes were found, from which
    starts.
    """
    size = num_starts * len(SETTINGS["start_scales"])
    tuning: dict[str, Any] = {"least curvature": float(arm["least"])}
    if name == "Laplace, linearised":
        best = arm["top"][arm["evidence"][:size].argmax()]
        starts = {
            f"N(0, {scale:g})": i * num_starts + np.arange(num_starts)
            for i, scale in enumerate(SETTINGS["start_scales"])
        }
        starts[equal_cost_fits.OF_NUTS] = np.arange(size, arm["top"].size)
        for start, part in starts.items():
            one = part[arm["evidence"][part].argmax()]
            tuning[start] = {
                key: float(arm[key][one]) for key in ("evidence", "top", "noise_at_top")
            }
            tuning[start] |= {
                "highest": float(arm["top"][part].max()),
                "share at the best top": float((arm["top"][part] > best - 0.5).mean()),
            }
    return {"gradients": size * num_steps, "tuning": tuning}


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each arm, with and without a gap: lists over redraws."""
    settings = units()

    def row(kind, name):
        redraws = [dict(scored[unit][name]) for unit in scored if settings[unit]["kind"] == kind]
        check, tuning = ([one.pop(entry) for one in redraws] for entry in ("check", "tuning"))
        lists = jax.tree.map(lambda *values: list(values), *redraws)
        return {
            "data": kind,
            "name": name,
            **lists,
            "check": check if check[0] else [],
            "tuning": tuning,
        }

    arms = [
        "NUTS, half",
        "NUTS",
        *(f"NUTS, {length}" for length in SETTINGS["NUTS"]),
        *(
            arm_name(name, of)
            for of in ("", equal_cost_fits.OF_NUTS)
            for name in SETTINGS["guides"]
        ),
        *LAPLACES,
    ]
    return [row(kind, name) for kind in ("whole", "gap") for name in arms]
