"""Priors learnt from eighteen tasks, given to networks on tasks never seen: redrawn data, every arm, every size.

One redraw: eighteen training tasks, the hierarchical posterior, its draws aligned, priors fitted to the
group's predictive weights, and eighteen new rotations on which every arm sees the same labels. Chains start
from the prior. Where the prior is a mixture or the draws themselves, importance sampling replaces chains.
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, metrics, networks, priors

import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import optax
import store
from blackjax.diagnostics import psis_weights
from jax.flatten_util import ravel_pytree
from tensorflow_probability.substrates.jax import bijectors as tfb
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 3020,
    "num_redraws": 5,
    "num_tasks": 18,
    "sizes": [0, 2, 5, 10, 25, 50],
    "more_sizes": [100, 200, 400],
    "joint_sizes": [5, 25],
    "num_test": 500,
    "num_started": 8,
    "num_chains": 4,
    "power": 0.6,
    "group_draws": 1000,
    "copies": 40,  # networks drawn from every draw of the group, for importance sampling
    "chosen_scales": [0.5, 1.0, 24.0],  # what cross-validation chose on other data sets: attribution.json
    "components": [2, 3, 4, 6],  # of the mixture; chosen by the log density of held-out chains
    "num_warmup": 150,
    "num_samples": 250,
    "noise_elsewhere": 0.6,
}
NETWORK = networks.MLP()
UNRAVEL, SIZE = densities.weights_of(NETWORK)
LAYER = priors.layer_of_weight(UNRAVEL(jnp.zeros(SIZE))["params"])
GROUP = hierarchical.log_density(NETWORK)
LOGITS = hierarchical.logits(NETWORK)
TASKS = SETTINGS["num_tasks"]
ELSEWHERE = ("N(0, 1)", "chosen scales", "one normal")  # the arms that are tried on tasks of other kinds


def take(tree, index):
    return jax.tree.map(lambda a: a[index], tree)


def as_vector(params):
    """Return parameters as one vector."""
    return ravel_pytree(params)[0]


def fit_group(key, tasks):
    """Sample the hierarchical posterior from a tempered start; return aligned draws [chain, draw] and their check."""
    key_start, key_tempered, key_chains = jax.random.split(key, 3)
    shapes = hierarchical.shapes(NETWORK, TASKS)
    starts = mcmc.normal_starts(key_start, shapes, (1, SETTINGS["num_started"]))
    below = take(hierarchical.labelled(tasks.x_train, tasks.y_train, SETTINGS["power"]), None)
    seen = take(hierarchical.labelled(tasks.x_train, tasks.y_train), None)
    sizes = {"num_warmup": 200, "num_samples": 100, "max_tree_depth": 5}
    ends = take(mcmc.sample(key_tempered, GROUP, starts, data=below, **sizes).draws, np.s_[0, :, -1])
    log_sd = np.stack([ends["log_sd"][f"Dense_{i}"] for i in range(3)], axis=1)
    reached = (log_sd[:, 2] - log_sd[:, :2].max(axis=1)).argsort()[::-1][: SETTINGS["num_chains"]]
    sizes = {"num_warmup": 300, "num_samples": SETTINGS["group_draws"], "max_tree_depth": 6}
    posterior = take(mcmc.sample(key_chains, GROUP, take(ends, reached[None]), data=seen, **sizes), 0)
    best = np.unravel_index(np.asarray(posterior.stats.log_density).argmax(), posterior.stats.log_density.shape)
    aligned = priors.align(posterior.draws, take(posterior.draws, best))
    before, after = (diagnostics.summarize(draws["mean"]) for draws in (posterior.draws, aligned))
    check = {
        "rhat_log_sd": np.asarray(diagnostics.summarize(posterior.draws["log_sd"]).rhat).tolist(),
        "rhat_means": [float(np.median(before.rhat)), float(np.median(after.rhat)), float(after.rhat.max())],
        "ess_means": [float(np.median(before.ess_bulk)), float(np.median(after.ess_bulk)), float(after.ess_bulk.min())],
        "sd": {name: float(np.exp(np.median(a))) for name, a in posterior.draws["log_sd"].items()},
        "divergences": int(posterior.stats.diverging.sum()),
    }
    return posterior.draws, aligned, take(aligned, best), check


FITS = {
    "scales only": functools.partial(priors.fit_scales, layer=LAYER),
    "a normal a layer": functools.partial(priors.fit_layers, layer=LAYER),
    "one normal": priors.fit_normal,
    "Student-t": priors.fit_student_t,
    **{f"mixture of {k}": functools.partial(priors.fit_mixture, num_components=k) for k in SETTINGS["components"]},
}


def held_out_density(w, names):
    """Mean log density of each chain's networks under fits to the others, by fit; w [chain, draw, weight]."""
    w = np.asarray(w)

    def one(fit, chain):
        return float(np.mean(fit(np.delete(w, chain, axis=0).reshape(-1, SIZE)).log_prob(w[chain])))

    return {name: [one(fit, chain) for chain in range(len(w))] for name, fit in ((name, FITS[name]) for name in names)}


def excess_kurtosis(w):
    """Of every weight, averaged over each layer's."""
    w = np.asarray(w, np.float64).reshape(-1, SIZE)
    z = (w - w.mean(axis=0)) / w.std(axis=0)
    return [float((z**4).mean(axis=0)[i == LAYER].mean() - 3) for i in range(3)]


def diagonal(scales):
    return tfb.Chain([tfb.Shift(np.zeros(SIZE, np.float32)), tfb.ScaleMatvecTriL(np.diag(scales).astype(np.float32))])


def independent(scales):
    return tfd.MultivariateNormalDiag(np.zeros(SIZE, np.float32), np.float32(scales)), diagonal(scales)


@functools.cache
def compiled_density(structure):
    """One density, and so one program, for all priors of one kind: their numbers are data."""

    def log_density(position, unit):
        labelled, leaves = unit
        return densities.informed_log_density(NETWORK, *jax.tree.unflatten(structure, leaves))(position, labelled)

    return log_density


@jax.jit
def chain_means(draws, x):
    """Mean probability of every chain, [unit, chain, point], of weights [unit, chain, draw, weight]."""

    def one_chain(draws, x):
        return jax.nn.sigmoid(jax.vmap(lambda v: NETWORK.apply(UNRAVEL(v), x))(draws)).mean(axis=0)

    return jax.lax.map(lambda unit: jax.lax.map(lambda draws: one_chain(draws, unit[1]), unit[0]), (draws, x))


def sample_units(key, prior, whiten, labelled, x_test):
    """Fit every unit under one prior by HMC; return mean probabilities [unit, chain, point] and the sampler's check."""
    leaves, structure = jax.tree.flatten((prior, whiten))
    units = len(labelled.x)
    unit_data = labelled, [jnp.broadcast_to(a, (units, *jnp.shape(a))) for a in leaves]
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, jax.ShapeDtypeStruct((SIZE,), jnp.float32), (units, 2))
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    density = compiled_density(structure)
    posterior = mcmc.sample(key_chains, density, starts, max_tree_depth=6, data=unit_data, **sizes)
    w = jax.jit(jax.vmap(jax.vmap(jax.vmap(whiten.forward))))(posterior.draws)
    rhat = [float(diagnostics.summarize(density).rhat[0]) for density in posterior.stats.log_density]
    check = {"rhat_log_density": float(np.quantile(rhat, 0.95)), "divergences": int(posterior.stats.diverging.sum())}
    return chain_means(w, x_test), check


@functools.partial(jax.jit, static_argnums=3)
def _weigh(w, task, x_test, sizes):
    """Log weights of networks by the likelihood of the first n labels, and what they predict, for one task."""

    def of_block(block):
        logits = jax.vmap(lambda v: NETWORK.apply(UNRAVEL(v), task.x))(block)
        each = densities.bernoulli_log_likelihood(logits, jnp.broadcast_to(task.y, logits.shape))
        return jnp.cumsum(each, axis=1)

    log_likelihood = jax.lax.map(of_block, w.reshape(-1, 500, SIZE)).reshape(len(w), -1)
    log_likelihood = jnp.concatenate([jnp.zeros((len(w), 1)), log_likelihood], axis=1)

    def of_size(size):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            log_weights, pareto_k = psis_weights(log_likelihood[:, size])
        weights = jnp.exp(log_weights - log_weights.max())
        weights = weights / weights.sum()
        at = (jnp.arange(1000) + 0.5) / 1000  # systematic resampling
        chosen = w[jnp.clip(jnp.searchsorted(jnp.cumsum(weights), at), 0, len(w) - 1)]
        p = jax.nn.sigmoid(jax.vmap(lambda v: NETWORK.apply(UNRAVEL(v), x_test))(chosen)).mean(axis=0)
        return p, pareto_k, 1 / (weights**2).sum()

    return [of_size(size) for size in sizes]


def weigh_tasks(halves, labelled, x_test, sizes):
    """Predict by weighting networks, two halves of them for two chains: [size, task, half, point]."""
    with ThreadPoolExecutor(2) as pool:

        def one(t):
            return [jax.device_get(_weigh(w, take(labelled, t), x_test[t], tuple(sizes))) for w in halves]

        found = list(pool.map(one, range(len(labelled.x))))
    p = np.array([[[half[s][0] for half in task] for task in found] for s in range(len(sizes))])
    pareto_k = [[float(half[s][1]) for task in found for half in task] for s in range(len(sizes))]
    ess = [[float(half[s][2]) for task in found for half in task] for s in range(len(sizes))]
    check = {
        "pareto_k_above_0.7": np.mean(np.array(pareto_k) > 0.7, axis=1).tolist(),
        "least_ess": np.min(ess, axis=1).tolist(),
    }
    return p, check


def joint(key, draws, tasks, new, sizes):
    """Fit the training tasks and ONE new task together, for every new task and size: [size, task, chain, point]."""
    key_offset, key_chains = jax.random.split(key)
    units = [(size, t) for size in sizes for t in range(TASKS)]
    ends = take(draws, np.s_[:2, -1])
    fresh = mcmc.normal_starts(key_offset, take(ends["offset"], np.s_[0, :1]), (len(units), 2))
    starts = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(units), *a.shape)), ends)
    starts["offset"] = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=2), starts["offset"], fresh)
    parts = [
        hierarchical.labelled(
            jnp.concatenate([tasks.x_train, new.x_train[t][None]]),
            jnp.concatenate([tasks.y_train, new.y_train[t][None]]),
            np.concatenate([np.ones((TASKS, 50)), (np.arange(50) < size)[None]]),
        )
        for size, t in units
    ]
    unit_data = jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)
    settings = {"num_warmup": 200, "num_samples": 300, "max_tree_depth": 6}
    posterior = mcmc.sample(key_chains, GROUP, starts, data=unit_data, **settings)
    last = jax.jit(
        jax.vmap(jax.vmap(jax.vmap(lambda d: as_vector(take(hierarchical.task_weights(d, TASKS + 1), -1)))))
    )(posterior.draws)
    x_test = jnp.stack([new.x_test[t] for _, t in units])
    rhat = [float(diagnostics.summarize(d).rhat[0]) for d in posterior.stats.log_density]
    p = np.asarray(chain_means(last, x_test)).reshape(len(sizes), TASKS, 2, -1)
    return p, {"rhat_log_density": float(np.quantile(rhat, 0.95)), "divergences": int(posterior.stats.diverging.sum())}


def all_together(key, draws, tasks, new, size):
    """Fit the training tasks and ALL new tasks together: another estimand. [task, chain, point]."""
    key_offset, key_chains = jax.random.split(key)
    ends = take(draws, np.s_[:, -1])
    fresh = mcmc.normal_starts(key_offset, take(ends["offset"], 0), (len(ends["log_sd"]["Dense_0"]),))
    ends["offset"] = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), ends["offset"], fresh)
    weight = np.concatenate([np.ones((TASKS, 50)), np.tile(np.arange(50) < size, (TASKS, 1))])
    both = [jnp.concatenate(pair) for pair in ((tasks.x_train, new.x_train), (tasks.y_train, new.y_train))]
    seen = take(hierarchical.labelled(*both, weight), None)
    settings = {"num_warmup": 200, "num_samples": 300, "max_tree_depth": 6}
    posterior = take(mcmc.sample(key_chains, GROUP, take(ends, None), data=seen, **settings), 0)

    @jax.jit
    def means(draws):
        x = jnp.concatenate([new.x_test, new.x_test])  # the first half is not looked at
        one = lambda d: jax.nn.sigmoid(LOGITS(d, x))[TASKS:]  # noqa: E731
        return jax.lax.map(lambda chain: jax.lax.map(one, chain).mean(axis=0), draws)

    return np.moveaxis(np.asarray(means(take(posterior.draws, np.s_[:, ::2]))), 0, 1), {
        "rhat_log_density": float(diagnostics.summarize(posterior.stats.log_density).rhat[0])
    }


def mean_loss(params, x, y, weight):
    each = densities.bernoulli_log_likelihood(NETWORK.apply(params, x), y)
    return -(weight * each).sum() / jnp.maximum(weight.sum(), 1)


@functools.partial(jax.jit, static_argnums=(4, 5))
def fine_tuned(params, x, y, weight, optimizer, num_steps):
    """Every task's parameters after each step of training on its seen labels, [step, task, ...]."""

    def one_task(x, y, weight):
        def step(carry, _):
            params, state = carry
            updates, state = optimizer.update(jax.grad(mean_loss)(params, x, y, weight), state)
            params = optax.apply_updates(params, updates)
            return (params, state), params

        return jax.lax.scan(step, (params, optimizer.init(params)), length=num_steps)[1]

    path = jax.vmap(one_task)(x, y, weight)
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1), path)


def choose_steps(params, tasks, size, optimizer, num_steps):
    """Find the number of steps that does best on the training tasks' other labels, and its loss there."""
    weight = jnp.broadcast_to((jnp.arange(50) < size).astype(jnp.float32), tasks.y_train.shape)
    path = fine_tuned(params, tasks.x_train, tasks.y_train, weight, optimizer, num_steps)
    rest = 1 - weight
    losses = jax.vmap(lambda p: jax.vmap(mean_loss)(p, tasks.x_train, tasks.y_train, rest).mean())(path)
    return int(losses.argmin()), float(losses.min())


def transferred(params, tasks, new, optimizer, num_steps=200):
    """Point predictions after fine-tuning on n labels, [size, task, 1, point], and the steps chosen."""
    p, steps = [], []
    for size in SETTINGS["sizes"]:
        if size:
            # All 50 labels leave none to choose by: the choice at half as many serves.
            chosen = choose_steps(params, tasks, min(size, 25), optimizer, num_steps)[0]
            weight = jnp.broadcast_to((jnp.arange(50) < size).astype(jnp.float32), new.y_train.shape)
            tuned = take(fine_tuned(params, new.x_train, new.y_train, weight, optimizer, num_steps), chosen)
            steps.append(chosen + 1)
        else:
            tuned = jax.tree.map(lambda a: jnp.broadcast_to(a, (TASKS, *a.shape)), params)
            steps.append(0)
        p.append(jax.nn.sigmoid(jax.vmap(NETWORK.apply)(tuned, new.x_test))[:, None])
    return np.array(p), {"steps": steps}


@functools.partial(jax.jit, static_argnums=3)
def meta_train(key, x, y, rate):
    """First-order MAML (Finn, Abbeel and Levine 2017): 3000 outer steps of Adam, five inner steps on ten labels."""
    key_init, key_steps = jax.random.split(key)
    outer = optax.adam(3e-3)

    def of_task(params, x, y, key):
        support = jax.random.permutation(key, 50) < 10
        weight = support.astype(jnp.float32)

        def inner(params, _):
            slope = jax.grad(mean_loss)(params, x, y, weight)
            return jax.tree.map(lambda a, b: a - rate * b, params, slope), None

        adapted = jax.lax.scan(inner, params, length=5)[0]
        return jax.grad(mean_loss)(adapted, x, y, 1 - weight)

    def step(carry, key):
        params, state = carry
        slopes = jax.vmap(of_task, (None, 0, 0, 0))(params, x, y, jax.random.split(key, len(x)))
        updates, state = outer.update(jax.tree.map(lambda a: a.mean(axis=0), slopes), state)
        return (optax.apply_updates(params, updates), state), None

    params = NETWORK.init(key_init, x[0])
    return jax.lax.scan(step, (params, outer.init(params)), jax.random.split(key_steps, 3000))[0][0]


def maml(key, tasks, new):
    """Choose the inner step on four of the training tasks, train on all, fine-tune as in training."""
    losses = {}
    for rate in (0.1, 0.3, 1.0):
        params = meta_train(key, tasks.x_train[:14], tasks.y_train[:14], rate)
        losses[rate] = choose_steps(params, jax.tree.map(lambda a: a[14:], tasks), 10, optax.sgd(rate), 50)[1]
    rate = min(losses, key=losses.get)
    params = meta_train(key, tasks.x_train, tasks.y_train, rate)
    p, check = transferred(params, tasks, new, optax.sgd(rate))
    return p, {**check, "rate": rate}


def other_tasks(key, new):
    """Eighteen tasks of each other kind, turned, scaled and sized as the new ones: {kind: Tasks}."""
    key_noise, key_clouds, key_spirals = jax.random.split(key, 3)
    num = 50 + SETTINGS["num_test"]

    def scaled(x, y):
        location, scale = x[:, :50].mean(axis=1, keepdims=True), x[:, :50].std(axis=1, keepdims=True)
        cos, sin = jnp.cos(new.angles)[:, None], jnp.sin(new.angles)[:, None]
        a, b = jnp.moveaxis((x - location) / scale, -1, 0)
        x = jnp.stack([cos * a - sin * b, sin * a + cos * b], axis=-1)
        return new._replace(x_train=x[:, :50], y_train=y[:, :50], x_test=x[:, 50:], y_test=y[:, 50:])

    def clouds(key):
        key_y, key_x = jax.random.split(key)
        y = jax.random.bernoulli(key_y, shape=(TASKS, num)).astype(jnp.int32)
        centres = jnp.array([[-1.0, 0.0], [1.0, 0.0]])
        return scaled(centres[y] + jax.random.normal(key_x, (TASKS, num, 2)), y)

    def spirals(key):
        key_y, key_r, key_x = jax.random.split(key, 3)
        y = jax.random.bernoulli(key_y, shape=(TASKS, num)).astype(jnp.int32)
        radius = jax.random.uniform(key_r, (TASKS, num), minval=0.2)
        turn = 4.0 * radius + jnp.pi * y
        x = radius[..., None] * jnp.stack([jnp.cos(turn), jnp.sin(turn)], axis=-1)
        return scaled(x + 0.08 * jax.random.normal(key_x, x.shape), y)

    mirror = jnp.array([-1.0, 1.0])
    noisy = data.rotated_moons(key_noise, TASKS, 50, SETTINGS["num_test"], SETTINGS["noise_elsewhere"])
    return {
        "noise 0.6": noisy,
        "mirrored": new._replace(x_train=new.x_train * mirror, x_test=new.x_test * mirror),
        "clouds": clouds(key_clouds),
        "spirals": spirals(key_spirals),
    }


def scored(p, y):
    """Scores by size; p [size, task, chain, point], y [task, point]."""
    p, y = np.clip(np.asarray(p, np.float64), 1e-7, 1 - 1e-7), np.asarray(y)
    mean = p.mean(axis=2)

    def nll(p):
        return -np.log(np.where(y == 1, p, 1 - p)).mean()

    return {
        "nll": [float(nll(one)) for one in mean],
        "accuracy": [float(100 * ((one > 0.5) == (y == 1)).mean()) for one in mean],
        "brier": [float(((one - y) ** 2).mean()) for one in mean],
        "calibration_error": [
            float(metrics.calibration_error(jnp.asarray(one, jnp.float32), jnp.asarray(y)).error) for one in mean
        ],
        "nll_by_chain": [[float(nll(one[:, c])) for c in range(p.shape[2])] for one in p],
    }


class Results(dict):
    """Scores of every arm, by kind of task and name, one entry a redraw."""

    def add(self, tasks, name, sizes, p, y, check=None):
        found = scored(p, y)
        kept = self.setdefault((tasks, name), {"sizes": list(sizes), "scores": [], "checks": []})
        kept["scores"].append(found)
        kept["checks"].append(check or {})
        print(f"{tasks:10} {name:28}", np.round(found["nll"], 3).tolist(), check or "", flush=True)


def units(tasks, sizes):
    """Every task with its first n labels seen, for all sizes one after the other; and the test points."""
    seen = np.repeat(np.arange(tasks.y_train.shape[1]) < np.array(sizes)[:, None], TASKS, axis=0)
    x, y, x_test = (
        jnp.tile(a, (len(sizes), *[1] * (a.ndim - 1))) for a in (tasks.x_train, tasks.y_train, tasks.x_test)
    )
    return hierarchical.labelled(x, y, seen.astype(np.float32)), x_test


def redraw(key, results):
    """All arms on one redraw; return what is kept of the fits."""
    key_data, key_group, key_predictive, *keys = jax.random.split(key, 20)
    keys = iter(keys)
    key_train, key_new, key_more, key_other = jax.random.split(key_data, 4)
    tasks = data.rotated_moons(key_train, TASKS, 50, 2)
    new = data.rotated_moons(key_new, TASKS, 50, SETTINGS["num_test"])
    raw, aligned, reference, check = fit_group(key_group, tasks)
    print(check, flush=True)
    key_w, key_raw, *key_copies = jax.random.split(key_predictive, 2 + SETTINGS["copies"])
    w, w_raw = priors.group_predictive(key_w, aligned), priors.group_predictive(key_raw, raw)
    kept = {
        "group": check,
        "held_out_density": held_out_density(w, FITS),
        "held_out_density_not_aligned": held_out_density(w_raw, list(FITS)[:3]),
        "excess_kurtosis": excess_kurtosis(w),
        "correlation_norm": float(np.abs(np.corrcoef(np.asarray(w).reshape(-1, SIZE).T) - np.eye(SIZE)).mean()),
        "scales": [float(np.sqrt((np.asarray(w)[..., i == LAYER] ** 2).mean())) for i in range(3)],
    }
    flat, flat_raw = np.asarray(w).reshape(-1, SIZE), np.asarray(w_raw).reshape(-1, SIZE)
    mixtures = {name: np.mean(v) for name, v in kept["held_out_density"].items() if name.startswith("mixture")}
    best = max(mixtures, key=mixtures.get)
    kept["mixture"] = best
    whiten, whiten_raw = priors.whiten(flat), priors.whiten(flat_raw)
    chosen = np.array(SETTINGS["chosen_scales"])[LAYER]
    scales = np.asarray(FITS["scales only"](flat).stddev())
    arms = {
        "N(0, 1)": independent(np.ones(SIZE)),
        "chosen scales": independent(chosen),
        "scales only": independent(scales),
        "a normal a layer": (FITS["a normal a layer"](flat), whiten),
        "one normal": (priors.fit_normal(flat), whiten),
        "one normal, not aligned": (priors.fit_normal(flat_raw), whiten_raw),
        "Student-t": (priors.fit_student_t(flat), whiten),
    }
    mixture = FITS[best](flat)

    sizes = SETTINGS["sizes"]
    others = other_tasks(key_other, new)

    results.add("moons", "Bayes optimum", sizes[:1], data.bayes_optimum(new, new.x_test)[None, :, None], new.y_test)
    main = units(new, sizes)
    elsewhere = [units(other, SETTINGS["joint_sizes"]) for other in others.values()]
    together = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), main, *elsewhere)
    count = len(main[1])
    for name, (prior, map_) in arms.items():
        p, found = sample_units(next(keys), prior, map_, *(together if name in ELSEWHERE else main))
        results.add("moons", name, sizes, p[:count].reshape(len(sizes), TASKS, 2, -1), new.y_test, found)
        if name in ELSEWHERE:
            parts = np.split(np.asarray(p[count:]), len(others))
            for (kind, other), part in zip(others.items(), parts, strict=True):
                shape = len(SETTINGS["joint_sizes"]), TASKS, 2, -1
                results.add(kind, name, SETTINGS["joint_sizes"], part.reshape(shape), other.y_test)

    plain = hierarchical.labelled(new.x_train, new.y_train)
    from_mixture = mixture.sample((2, len(flat) * SETTINGS["copies"] // 2), seed=next(keys))
    p, found = weigh_tasks(from_mixture, plain, new.x_test, sizes)
    results.add("moons", "mixture", sizes, p, new.y_test, found)
    halves = [
        jnp.concatenate([priors.group_predictive(k, take(aligned, half)).reshape(-1, SIZE) for k in key_copies])
        for half in (np.s_[::2], np.s_[1::2])
    ]
    p, found = weigh_tasks(halves, plain, new.x_test, sizes)
    results.add("moons", "the draws themselves", sizes, p, new.y_test, found)

    p, found = joint(next(keys), raw, tasks, new, SETTINGS["joint_sizes"])
    results.add("moons", "joint fit, one new task", SETTINGS["joint_sizes"], p, new.y_test, found)
    p, found = zip(*[all_together(next(keys), raw, tasks, new, n) for n in SETTINGS["joint_sizes"]], strict=True)
    results.add("moons", "joint fit, all new tasks", SETTINGS["joint_sizes"], np.array(p), new.y_test, {"sizes": found})

    start = {"params": reference["mean"]}
    p, found = transferred(start, tasks, new, optax.adam(0.03))
    results.add("moons", "fine-tuning", sizes, p, new.y_test, found)
    p, found = maml(next(keys), tasks, new)
    results.add("moons", "first-order MAML", sizes, p, new.y_test, found)

    longer = data.redraw_test(key_more, new, max(SETTINGS["more_sizes"]) - 50)
    longer = new._replace(
        x_train=jnp.concatenate([new.x_train, longer.x_test], axis=1),
        y_train=jnp.concatenate([new.y_train, longer.y_test], axis=1),
    )
    for name in ("N(0, 1)", "chosen scales"):
        p, found = sample_units(next(keys), *arms[name], *units(longer, SETTINGS["more_sizes"]))
        p = p.reshape(len(SETTINGS["more_sizes"]), TASKS, 2, -1)
        results.add("moons, more labels", name, SETTINGS["more_sizes"], p, new.y_test, found)
    return kept


def sources(key, results):
    """The sources' own tasks as training tasks: what the page computes again."""
    key_new, key_group, key_w, *keys = jax.random.split(key, 5)
    new = data.rotated_moons(key_new, TASKS, 50, SETTINGS["num_test"])
    _, aligned, _, check = fit_group(key_group, data.source_moons())
    w = np.asarray(priors.group_predictive(key_w, aligned)).reshape(-1, SIZE)
    arms = {"N(0, 1)": independent(np.ones(SIZE)), "one normal": (priors.fit_normal(w), priors.whiten(w))}
    sizes = SETTINGS["joint_sizes"]
    for key, (name, arm) in zip(keys, arms.items(), strict=True):
        p, found = sample_units(key, *arm, *units(new, sizes))
        p = p.reshape(len(sizes), TASKS, 2, -1)
        results.add("moons, sources", name, sizes, p, new.y_test, {**found, "group": check})


def main():
    results, fits = Results(), []
    root = jax.random.key(SETTINGS["seed"])
    sources(jax.random.fold_in(root, 99), results)
    for key in jax.random.split(root, SETTINGS["num_redraws"]):
        fits.append(redraw(key, results))
    rows = [{"tasks": tasks, "name": name, **kept} for (tasks, name), kept in results.items()]
    rows.append({"tasks": "training", "name": "fits", "sizes": [], "scores": fits, "checks": []})
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
