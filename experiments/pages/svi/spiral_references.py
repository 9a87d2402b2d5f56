"""What the spiral's guide is held against: its posterior by NUTS, an ensemble of its cost, and
Laplace's method.

NUTS samples the model of ``svi/spiral`` under both of its priors, so that what the guide and the
posterior do can be told apart. Its weights have copies; it is judged by its log density and by
probabilities. Ten networks take as many gradients as the guide's ten particles, and so do the ten
starts of Laplace's method, of which the one of the highest evidence by the generalised Gauss-Newton
matrix (GGN) counts. Training sets and fresh points are those of ``svi/spiral``, by the same keys.
"""

from helpers import (
    common,
    densities,
    diagnostics,
    mcmc,
    metrics,
    networks,
    plots,
    predict,
    training,
)
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from scipy.special import log_softmax, logsumexp

from experiments.methods import runs
from experiments.pages.svi import spiral
from experiments.problems import spirals

SETTINGS = {
    "seed": 5012,
    "num_redraws": 5,
    "prior_scales": [10.0, 1.0],
    "num_steps": 10_000,
    # each a gradient a step: with as many steps the cost of the guide's ten particles
    "num_networks": 10,
    "num_draws": 200,  # of Laplace's method, as of the guide
    "num_chains": 4,
    "num_warmup": 200,
    "num_samples": [700, 500],  # by prior; chosen, with the depth, on a training set of another key
    "max_tree_depth": [10, 8],
    "thin": 3,
    "learning_rate": 1e-2,  # of Laplace's method, falling to 0 along a cosine
    # points to a side, near the data, where the chains' probabilities are compared; 12 far from
    # them
    "grid": 5,
    "least_sd": 1e-2,  # of a probability over draws: one that never moves has no R-hat
}
NETWORK = spirals.NETWORK
LOG_DENSITY = densities.flat_log_density(NETWORK)
SMALL = {"redraw": 0, "method": "NUTS", "prior_scale": 1.0, "size": 100}


def units() -> dict[str, dict]:
    """Return each redraw's networks, NUTS and Laplace's method by prior; size: draws or steps."""
    found = {}
    for redraw in range(SETTINGS["num_redraws"]):
        settings = {"redraw": redraw, "size": SETTINGS["num_steps"]}
        found[f"redraw {redraw}, networks"] = settings | {"method": "networks", "prior_scale": None}
        for scale, draws in zip(SETTINGS["prior_scales"], SETTINGS["num_samples"], strict=True):
            name = f"redraw {redraw}, prior sd {scale:g}"
            found[f"{name}, Laplace"] = settings | {"method": "Laplace", "prior_scale": scale}
            found[f"{name}, NUTS"] = settings | {
                "method": "NUTS",
                "prior_scale": scale,
                "size": draws,
            }
    return found


def unit(redraw: int, method: str, prior_scale: float | None, size: int) -> dict:
    """Return weights, [chain, draw], [member] or [draw], and how chains or starts fared."""
    train, test, _ = spirals.problem(redraw)
    key = partial(common.key, SETTINGS["seed"], redraw, method)
    if method == "networks":
        keys = jnp.stack([key(member) for member in range(SETTINGS["num_networks"])])
        weight = jnp.ones((len(keys), train.y.size))
        return {"params": spiral.networks_of(keys, train, test, weight, size)["params"]}
    observed = densities.observe(train.x, train.y, 2 * [prior_scale], num_classes=3)
    if method == "Laplace":
        return laplace(key(prior_scale), observed, size)
    shapes = networks.parameter_shapes(NETWORK, 2)
    starts = mcmc.normal_starts(
        key(prior_scale, "start"), shapes, (SETTINGS["num_chains"],), prior_scale
    )
    depth = SETTINGS["max_tree_depth"][SETTINGS["prior_scales"].index(prior_scale)]
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": size, "max_tree_depth": depth}
    posterior = mcmc.sample(key(prior_scale, "chains"), LOG_DENSITY, starts, data=observed, **sizes)
    return posterior.draws | runs.kept_run(posterior)


def laplace(key, observed, num_steps):
    """Return the top of the highest evidence, and draws by the GGN's curvature there."""
    key_start, key_draw = jax.random.split(key)
    tops, height, ggn = jax.device_get(
        climb(jax.random.split(key_start, SETTINGS["num_networks"]), observed, num_steps)
    )
    evidence = np.array(
        [
            h - 0.5 * np.linalg.slogdet(a.astype(np.float64))[1]
            for h, a in zip(height, ggn, strict=True)
        ]
    )
    best = int(evidence.argmax())
    top, unravel = ravel_pytree(take(tops, best))
    values, vectors = np.linalg.eigh(ggn[best].astype(np.float64))
    random = np.random.default_rng(np.asarray(jax.random.key_data(key_draw)))
    moves = (random.normal(size=(SETTINGS["num_draws"], top.size)) / np.sqrt(values)) @ vectors.T
    log_evidence = evidence + 0.5 * top.size * np.log(2 * np.pi)
    return {
        "mode": take(tops, best)["params"],
        "moves": jax.vmap(unravel)(jnp.asarray(moves, top.dtype))["params"],
        "log_evidence": log_evidence,
    }


@partial(jax.jit, static_argnums=2)
def climb(keys, observed, num_steps):
    """Return Adam's tops from networks' starts, log density, and minus its GGN curvature."""
    optimizer = optax.adam(optax.cosine_decay_schedule(SETTINGS["learning_rate"], num_steps))
    optimizer = optax.chain(optax.clip_by_global_norm(10.0), optimizer)

    def one(key):
        start = NETWORK.init(key, observed.x)
        top, _ = training.train(lambda p: -LOG_DENSITY(p, observed), start, optimizer, num_steps)
        vector, unravel = ravel_pytree(top)
        logits, slopes = (
            NETWORK.apply(top, observed.x),
            jax.jacobian(lambda v: NETWORK.apply(unravel(v), observed.x)),
        )
        p = jax.nn.softmax(logits)
        fisher = p[:, :, None] * jnp.eye(3)[None] - p[:, :, None] * p[:, None, :]
        of_logits = slopes(vector)
        prior = jax.hessian(lambda v: densities.log_prior(unravel(v), observed.prior_scales))(
            vector
        )
        ggn = jnp.einsum("pci,pcd,pdj->ij", of_logits, fisher, of_logits) - prior
        return top, LOG_DENSITY(top, observed), ggn

    return jax.lax.map(one, keys)


def score(drawn: dict, redraw: int, method: str, prior_scale: float | None, size: int) -> dict:
    """Return scores on fresh points, entropies there and far away, by method."""
    _, test, _ = spirals.problem(redraw)
    x, y = jnp.concatenate([test.x, spirals.far_points(100)]), np.asarray(test.y)
    if method == "NUTS":
        return {f"NUTS, prior sd {prior_scale:g}": of_chains(drawn, x, y)}
    none = {"check": {}}
    if method == "networks":
        logits = _logits({"params": drawn["params"]}, x)
        name = f"ensemble of {SETTINGS['num_networks']}"
        return {name: spiral.scores(log_softmax(np.asarray(logits, np.float64), axis=-1), y) | none}
    logits = _linearised({"params": drawn["mode"]}, {"params": drawn["moves"]}, x)
    found = spiral.scores(log_softmax(np.asarray(logits, np.float64), axis=-1), y)
    return {
        f"Laplace, prior sd {prior_scale:g}": found
        | none
        | {"log_evidence": drawn["log_evidence"].tolist()}
    }


_logits = jax.jit(lambda weights, x: jax.lax.map(lambda one: NETWORK.apply(one, x), weights))


@jax.jit
def _linearised(mode, moves, x):
    """Logits [draw, point, class] to first order round the mode (Immer et al. 2021)."""

    def one(move):
        value, slope = jax.jvp(lambda w: NETWORK.apply(w, x), (mode,), (move,))
        return value + slope

    return jax.lax.map(one, moves)


def of_chains(drawn, x, y):
    """Score NUTS's mean prediction, with errors; diagnose it by p and log density."""
    line = jnp.linspace(-0.6, 0.6, SETTINGS["grid"])
    near = jnp.stack(jnp.meshgrid(line, line), axis=-1).reshape(-1, 2)
    weights = {"params": drawn["params"]}
    p = predict.of_draws(
        lambda w: jax.nn.softmax(NETWORK.apply(w, jnp.concatenate([near, spirals.far_points(12)]))),
        weights,
    )
    p = np.asarray(p).reshape(*p.shape[:2], -1)
    check = runs.diagnosis(runs.run_from(drawn), p[..., p.std(axis=(0, 1)) >= SETTINGS["least_sd"]])
    thinned = take(weights, np.s_[:, :: SETTINGS["thin"]])
    logits = np.asarray(predict.of_draws(lambda w: NETWORK.apply(w, x), thinned), np.float64)
    log_p = log_softmax(logits, axis=-1).reshape(-1, *logits.shape[2:])
    found = spiral.scores(log_p, y)
    errors = {
        name: diagnostics.standard_error(v.reshape(len(p), -1))
        for name, v in contributions(log_p, y).items()
    }
    found["scores"]["NLL_error"] = float(errors.pop("NLL"))
    found |= {f"{name}_error": float(error) for name, error in errors.items()}
    return found | {"check": check, **pictured(thinned, np.exp(log_p[:, : len(y)]).mean(axis=0), y)}


def contributions(log_p, y):
    """What each draw adds to the scores of the mean prediction, to first order."""
    p, size, at = np.exp(log_p), len(y), np.arange(len(y))
    mean, of_label = p.mean(axis=0), logsumexp(log_p[:, at, y], axis=0) - np.log(len(p))
    bits = -np.log2(np.clip(mean, 1e-30, 1))
    return {
        "NLL": np.exp(log_p[:, at, y] - of_label).mean(axis=1),
        "entropy_near": (p[:, :size] * bits[:size]).sum(axis=-1).mean(axis=1),
        "entropy_far": (p[:, size:] * bits[size:]).sum(axis=-1).mean(axis=1),
        "aleatoric_far": spiral.entropy(p[:, size:]).mean(axis=1),
    }


def pictured(weights, p, y):
    """Return the reliability diagram, and entropy far away on ``plots.grid``."""
    calibration = metrics.calibration_error(*metrics.top_label(jnp.float32(p), jnp.asarray(y)))
    grid = plots.grid(61)
    mean = predict.chain_means(lambda w: jax.nn.softmax(NETWORK.apply(w, grid)), weights)
    bins = {name: np.asarray(value).tolist() for name, value in calibration._asdict().items()}
    return {
        "reliability": bins,
        "far_map": spiral.entropy(np.asarray(mean).mean(axis=0)).round(3).tolist(),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each redraw and method; only the first redraw is pictured."""
    settings = units()

    def row(unit, name, found):
        redraw = settings[unit]["redraw"]
        left_out = () if redraw == 0 else ("far_map", "reliability")
        return {"redraw": redraw, "name": name} | {
            k: v for k, v in found.items() if k not in left_out
        }

    return [
        row(unit, name, found)
        for unit, methods in scored.items()
        for name, found in methods.items()
    ]
