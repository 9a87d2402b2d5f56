"""Bad input for every public function, made from one good call of each and the kinds of its
arguments.

A kind knows what is wrong for it: a count of 2.5, a probability of 1.5, an array with an axis too
many. Types that are wrong are apart, in ``test_checks``.
"""

from helpers import (
    checks,
    common,
    copies,
    data,
    densities,
    diagnostics,
    hierarchical,
    mcmc,
    metrics,
    monte_carlo,
    networks,
    numpyro_models,
    plots,
    predict,
    sgfs,
    sgmcmc,
    smc,
    summaries,
    svi,
    tempering,
    training,
    verify,
)

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import optax
from numpyro import distributions as dist
from numpyro.infer import autoguide

KEY = jax.random.key(1)


class Count(NamedTuple):
    """An integer of so many or more."""

    least: int = 1

    def bad(self, good: int) -> Iterator[tuple[str, Any]]:
        """Yield what is wrong, and the value."""
        for value in (-3, self.least - 1, good + 0.5, np.nan, np.inf):
            yield f"{value}", value


class Number(NamedTuple):
    """A number between two bounds."""

    low: float = 0.0
    high: float = np.inf
    closed: bool = False
    infinite: bool = False  # whether infinity is as good

    def bad(self, good: float) -> Iterator[tuple[str, Any]]:
        """Yield what is wrong, and the value."""
        below = [] if self.low == -np.inf else [self.low - 1] + [self.low] * (not self.closed)
        above = [self.high, self.high + 1] if self.high < np.inf else []
        infinite = [np.inf] * (not self.infinite)
        for value in (np.nan, -np.inf, *infinite, *below, *above):
            yield f"{value}", value


class Values(NamedTuple):
    """An array, or a pytree of arrays, with finite numbers."""

    outside: tuple[float, ...] = ()  # numbers that it may not have
    axes: bool = True  # whether another number of axes is wrong
    empty: bool = True  # whether no entry is wrong
    shorter: bool = False  # whether its first axis is that of another argument
    finite: bool = True  # whether its values are looked at: not within a compiled program
    single: bool = True  # whether JAX holds them, in 32 bits, and not NumPy in 64

    def bad(self, good: Any) -> Iterator[tuple[str, Any]]:
        """Yield what is wrong, and the value."""
        changes: dict[str, Callable] = {}
        if self.finite:
            for value in (np.nan, np.inf, *[1e39] * self.single, *self.outside):
                changes[f"entry {value}"] = partial(_with_entry, value=value)
        if self.axes:
            changes["an axis more"] = lambda a: np.asarray(a)[None]
            changes["an axis less"] = lambda a: np.asarray(a)[0]
        if self.empty:
            changes["no entry"] = lambda a: np.asarray(a)[:0]
        if self.shorter:
            changes["one entry less"] = lambda a: np.asarray(a)[:-1]
        leaves, structure = jax.tree.flatten(good)
        for what, change in changes.items():
            yield what, jax.tree.unflatten(structure, [change(leaves[0]), *leaves[1:]])


def _with_entry(array, value):
    changed = np.array(array, np.float64)
    changed.flat[changed.size // 2] = value
    return changed


class Index(NamedTuple):
    """The number of an entry, of so many."""

    length: int

    def bad(self, good: int) -> Iterator[tuple[str, Any]]:
        """Yield what is wrong, and the value."""
        for value in (self.length, -self.length - 1, [0, self.length], (0, 10**6)):
            yield f"{value}", np.array(value) if isinstance(value, list) else value


class Case(NamedTuple):
    """A good call, and what its arguments are."""

    function: Callable
    good: dict[str, Any]
    kinds: dict[str, Count | Number | Values]


def bad_calls(case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls of a case that have one bad argument each, with a word on it."""
    for name, kind in case.kinds.items():
        for what, value in kind.bad(case.good[name]):
            yield f"{name}: {what}", {**case.good, name: value}


def outcome(case: Case, arguments: dict[str, Any]) -> str:
    """Return "clear", "unclear: ..." or "answer: ..." of a bad call.

    Clear is a ValueError or a FloatingPointError that says what was given and what was expected, or
    which number is not finite. NumPy may warn before of a cast that overflows.
    """
    try:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            found = case.function(**arguments)
    except (ValueError, FloatingPointError) as error:
        words = str(error)
        if ("given" in words and "expected" in words) or "not finite" in words:
            return "clear"
        return f"unclear: {type(error).__name__}: {words[:200]}"
    except Exception as error:
        return f"unclear: {type(error).__name__}: {str(error)[:200]}"
    return f"answer: {str(found)[:60]}"


# ------------------------------------------------------------------------------ what is good
X, Y = np.linspace(-1, 1, 24, dtype=np.float32).reshape(12, 2), np.arange(12) % 2
MANY = np.linspace(0.05, 0.95, 12)
P = np.random.default_rng(1).uniform(0.1, 0.9, (4, 50, 12)).astype(np.float32)
CLASSES = np.random.default_rng(2).dirichlet(np.ones(3), 12).astype(np.float32)
DRAWS = np.random.default_rng(3).normal(size=(4, 50, 3)).astype(np.float32)
NETWORK = networks.MLP(hidden=(3,))
PARAMS = NETWORK.init(KEY, X)
OF_DRAWS = jax.tree.map(lambda a: jnp.broadcast_to(a, (4, 50, *a.shape)), PARAMS)
TASKS = data.rotated_moons(KEY, 3, 10, 10)
STARTS = {"a": np.random.default_rng(4).normal(size=(4, 2)).astype(np.float32)}


def normal(position, points=None):
    """A log density."""
    shift = 0.0 if points is None else points.mean()
    return -0.5 * ((position["a"] - shift) ** 2).sum()


POSTERIOR = mcmc.sample(KEY, normal, STARTS, data=X, num_warmup=40, num_samples=20, progress=False)
OBSERVED = densities.observe(X, Y, [1.0, 1.0])
HIERARCHICAL = jax.tree.map(
    lambda shape: np.random.default_rng(5).normal(size=(2, 3, *shape.shape)).astype(np.float32),
    hierarchical.shapes(NETWORK, 3, 2),
)
ALGORITHM = sgfs.sgfs(
    lambda p: -0.5 * p["a"] @ p["a"], lambda p, x: -0.5 * ((p["a"] - x) ** 2).sum(), 12
)


def model(points):
    """A NumPyro model of a mean."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("points", points.shape[0]):
        numpyro.sample("x", dist.Normal(mean, 1.0), obs=points[:, 0])


FIT = svi.fit(KEY, model, autoguide.AutoNormal, (X,), num_steps=10, progress=False)
NOISE = Number(closed=True)
PROBABILITY, LABELS = (-0.1, 1.5), (2.0, -1.0, 0.5)
FLAT = Values(finite=False)
OF_POINTS = {"p": Values(PROBABILITY, shorter=True), "y": Values(LABELS, shorter=True)}
OF_DRAWN = {**OF_POINTS, "p": Values(PROBABILITY)}
DOUBLE = Values(axes=False, single=False)
SAMPLING = {
    "initial_positions": Values(axes=False, empty=True),
    "num_warmup": Count(20),
    "target_acceptance": Number(0.0, 1.0),
    "max_tree_depth": Count(),
}
SAMPLED = {
    "key": KEY,
    "log_density": normal,
    "initial_positions": STARTS,
    "data": X,
    "num_warmup": 40,
    "target_acceptance": 0.8,
    "max_tree_depth": 5,
    "progress": False,
}
MINIBATCHES = {
    "batch_size": 4,
    "step_size": 1e-3,
    "num_warmup": 4,
    "num_samples": 4,
    "thin": 1,
    "num_cycles": 1,
}
CASES = {
    "data.two_moons": Case(
        data.two_moons,
        {"key": KEY, "num_points": 5, "noise": 0.3},
        {"num_points": Count(), "noise": NOISE},
    ),
    "data.rotated_moons": Case(
        data.rotated_moons,
        {"key": KEY, "num_tasks": 2, "num_train": 4, "num_test": 4, "noise": 0.3},
        {"num_tasks": Count(), "num_train": Count(2), "num_test": Count(), "noise": NOISE},
    ),
    "data.redraw_test": Case(
        data.redraw_test,
        {"key": KEY, "tasks": TASKS, "num_test": 4, "noise": 0.3},
        {"num_test": Count(), "noise": NOISE},
    ),
    **{
        f"data.{function.__name__}": Case(
            function, {"x": X, "noise": 0.3}, {"x": Values(), "noise": Number(0.05, closed=True)}
        )
        for function in (data.moons_log_density, data.moons_probability)
    },
    "data.bayes_optimum": Case(
        data.bayes_optimum,
        {"tasks": TASKS, "x": TASKS.x_test, "noise": 0.3},
        {"x": Values(shorter=True), "noise": Number(0.05, closed=True)},
    ),
    "data.to_raw": Case(
        data.to_raw, {"tasks": TASKS, "x": TASKS.x_test}, {"x": Values(shorter=True)}
    ),
    "data.to_task": Case(
        data.to_task,
        {"raw": X, "angle": np.float32(0.3), "location": X[0], "scale": X[-1]},
        {
            "raw": Values(),
            "location": Values(shorter=True),
            "scale": Values((0.0, -1.0), shorter=True),
        },
    ),
    "densities.observe": Case(
        densities.observe,
        {"x": X, "y": Y, "prior_scales": np.ones(2), "weight": np.ones(12), "num_classes": 2},
        {
            "x": Values(shorter=True),
            "y": Values(LABELS, shorter=True),
            "prior_scales": Values((0.0, -1.0), axes=False),
            "weight": Values((-0.1, 1.5), axes=False, shorter=True),
            "num_classes": Count(2),
        },
    ),
    "densities.bernoulli_log_likelihood": Case(
        densities.bernoulli_log_likelihood,
        {"logits": X[:, 0], "y": Y},
        {"logits": FLAT._replace(shorter=True, empty=True), "y": FLAT._replace(shorter=True)},
    ),
    "densities.categorical_log_likelihood": Case(
        densities.categorical_log_likelihood,
        {"logits": CLASSES, "y": Y},
        {"logits": FLAT._replace(shorter=True), "y": FLAT._replace(shorter=True)},
    ),
    "densities.log_prior": Case(
        densities.log_prior,
        {"params": PARAMS, "scales": np.ones(2, np.float32)},
        {"scales": FLAT._replace(shorter=True)},
    ),
    "densities.regression_log_prior": Case(
        densities.regression_log_prior,
        {"prior": dist.Normal(0.0, 1.0), "noise_scale": 0.5},
        {"noise_scale": Number()},
    ),
    "densities.regression_shapes": Case(
        densities.regression_shapes,
        {"network": NETWORK, "num_features": 2},
        {"num_features": Count()},
    ),
    "densities.regression_log_density": Case(
        densities.regression_log_density,
        {"network": NETWORK, "prior": dist.Normal(0.0, 1.0), "noise_scale": 0.5},
        {"noise_scale": Number()},
    ),
    "diagnostics.nll_error": Case(diagnostics.nll_error, {"p": P, "y": Y}, OF_DRAWN),
    "diagnostics.leave_one_out": Case(
        diagnostics.leave_one_out, {"log_likelihood": np.log(P)}, {"log_likelihood": Values()}
    ),
    "diagnostics.check": Case(
        diagnostics.check,
        {"posterior": POSTERIOR, "predictions": POSTERIOR.draws["a"]},
        {"predictions": DOUBLE},
    ),
    "diagnostics.of_quantities": Case(
        lambda draws: diagnostics.of_quantities({"draws": draws}),
        {"draws": DRAWS},
        {"draws": DOUBLE},
    ),
    "hierarchical.shapes": Case(
        hierarchical.shapes,
        {"network": NETWORK, "num_tasks": 3, "num_features": 2},
        {"num_tasks": Count(), "num_features": Count()},
    ),
    "mcmc.normal_starts": Case(
        lambda count, scale: mcmc.normal_starts(KEY, {"a": np.zeros(2)}, (count,), scale),
        {"count": 4, "scale": 1.0},
        {"count": Count(), "scale": NOISE},
    ),
    "numpyro_models.constrained": Case(
        numpyro_models.constrained,
        {"found": numpyro_models.of(model, X), "draws": {"mean": DRAWS[..., 0]}, "data": X},
        {"draws": Values(axes=False, finite=False)},
    ),
    "mcmc.sample": Case(
        mcmc.sample,
        {**SAMPLED, "num_samples": 10},
        {**SAMPLING, "num_samples": Count(), "data": Values(axes=False, empty=False)},
    ),
    "mcmc.warm_up": Case(mcmc.warm_up, SAMPLED, SAMPLING),
    "mcmc.extend": Case(
        mcmc.extend,
        {
            "posterior": POSTERIOR,
            "log_density": normal,
            "data": X,
            "num_samples": 10,
            "progress": False,
        },
        {"num_samples": Count(), "data": Values(axes=False, empty=False)},
    ),
    "metrics.interval": Case(metrics.interval, {"values": np.arange(3.0)}, {"values": DOUBLE}),
    **{
        f"metrics.{function.__name__}": Case(function, {"p": MANY, "y": Y}, OF_POINTS)
        for function in (
            metrics.accuracy,
            metrics.negative_log_likelihood,
            metrics.brier_score,
            metrics.scores,
        )
    },
    "metrics.calibration_error": Case(
        metrics.calibration_error,
        {"p": MANY, "y": Y, "num_bins": 3},
        {**OF_POINTS, "num_bins": Count()},
    ),
    **{
        f"metrics.{function.__name__}": Case(
            function,
            {"p": CLASSES, "y": np.arange(12) % 3},
            {
                "p": Values((-0.1, 1.5), shorter=True),
                "y": Values((3.0, -1.0, 0.5), shorter=True),
            },
        )
        for function in (metrics.top_label, metrics.class_scores)
    },
    **{
        name: Case(
            function,
            {mean: DRAWS[0, :48], noise: np.ones(48), "y": DRAWS[0, 0]},
            {
                mean: Values(single=False, shorter=True),
                noise: Values((0.0, -1.0), single=False, shorter=True),
                "y": Values(single=False, shorter=True),
            },
        )
        for name, function, mean, noise in (
            ("metrics.mixture_cdf", metrics.mixture_cdf, "mean", "sd"),
            ("metrics.mixture_nll", metrics.mixture_nll, "mean", "sd"),
            ("monte_carlo.mixture_nll_error", monte_carlo.mixture_nll_error, "f", "noise"),
        )
    },
    "metrics.coverage": Case(
        metrics.coverage,
        {"cdf": MANY, "level": 0.9},
        {"cdf": Values(PROBABILITY, axes=False), "level": Number(0.0, 1.0)},
    ),
    "monte_carlo.percent_right": Case(monte_carlo.percent_right, {"p": P, "y": Y}, OF_DRAWN),
    "monte_carlo.jackknife": Case(
        lambda draws, num_stretches: monte_carlo.jackknife(
            lambda a: a.mean(axis=0), draws, num_stretches=num_stretches
        ),
        {"draws": DRAWS[0], "num_stretches": 10},
        {"draws": DOUBLE, "num_stretches": Count(2)},
    ),
    "networks.MLP": Case(
        lambda units, num_outputs: networks.MLP(hidden=(units,), num_outputs=num_outputs),
        {"units": 3, "num_outputs": 1},
        {"units": Count(), "num_outputs": Count()},
    ),
    **{
        f"networks.{function.__name__}": Case(
            function, {"network": NETWORK, "num_features": 2}, {"num_features": Count()}
        )
        for function in (networks.parameter_shapes, networks.weights_of)
    },
    "predict.probabilities": Case(
        partial(predict.probabilities, NETWORK.apply),
        {"draws": OF_DRAWS, "x": X},
        {"draws": Values(axes=False, finite=False)},
    ),
    **{
        f"predict.{function.__name__}": Case(
            function, {"p": p}, {"p": Values(PROBABILITY, axes=axes)}
        )
        for function, p, axes in (
            (predict.variance_split, P, False),
            (predict.entropy_split, P, False),
            (predict.class_entropy_split, np.stack([P, 1 - P], -1), False),
        )
    },
    **{
        f"predict.{function.__name__}": Case(
            partial(function, lambda a: a**2),
            {"draws": DRAWS, "num_axes": 2},
            {"draws": Values(axes=False, finite=False), "num_axes": Count()},
        )
        for function in (predict.of_draws, predict.chain_means)
    },
    "predict.by_chain": Case(
        lambda draws: predict.by_chain(lambda a: a**2, draws),
        {"draws": DRAWS},
        {"draws": Values(axes=False, finite=False)},
    ),
    "sgfs.sgfs": Case(
        sgfs.sgfs,
        {
            "logprior_fn": normal,
            "loglikelihood_fn": normal,
            "data_size": 12,
            "gamma": 2.0,
            "forget": 3.0,
            "preconditioner": np.eye(2),
        },
        {
            "data_size": Count(2),
            "gamma": Number(),
            "forget": Number(closed=True),
            "preconditioner": Values(),
        },
    ),
    "sgmcmc.sample": Case(
        partial(sgmcmc.sample, KEY, ALGORITHM, progress=False),
        {"initial_positions": STARTS, "data": X, **MINIBATCHES},
        {
            "initial_positions": Values(axes=False),
            "data": Values(axes=False, shorter=True),
            "batch_size": Count(),
            "step_size": Number(infinite=True),
            "num_warmup": Count(0),
            "num_samples": Count(),
            "thin": Count(),
            "num_cycles": Count(),
        },
    ),
    "summaries.summarize": Case(
        summaries.summarize,
        {"values": {"a": DRAWS, "b": DRAWS}},
        {"values": DOUBLE._replace(shorter=True)},
    ),
    "summaries.rhat_bound": Case(
        summaries.rhat_bound,
        {
            "ess_alone": np.array([400.0]),
            "num_quantities": 1,
            "num_draws": 1000,
            "num_chains": 4,
            "chance": 1e-5,
        },
        {
            "ess_alone": Values((-1.0,), axes=False, empty=False),
            "num_quantities": Count(),
            "num_draws": Count(8),
            "num_chains": Count(2),
            "chance": Number(0.0, 1.0),
        },
    ),
    **{
        f"summaries.{function.__name__}": Case(function, {"values": DRAWS}, {"values": DOUBLE})
        for function in (summaries.standard_error, summaries.ess_of_median_chain)
    },
    "svi.fit": Case(
        lambda points, num_steps: svi.fit(
            KEY, model, autoguide.AutoNormal, (points,), num_steps=num_steps, progress=False
        ),
        {"points": X, "num_steps": 10},
        {"points": Values(axes=False, empty=False), "num_steps": Count()},
    ),
    "svi.draw": Case(
        partial(svi.draw, KEY, model, autoguide.AutoNormal, FIT.params, (X,)),
        {"num_draws": 3},
        {"num_draws": Count()},
    ),
    "verify.compare_with_exact": Case(
        verify.compare_with_exact,
        {"draws": DRAWS, "target": np.zeros(3), "chance": 1e-5, "bias": 0.0},
        {
            "draws": DOUBLE._replace(axes=True),
            "target": DOUBLE._replace(shorter=True),
            "chance": Number(0.0, 1.0),
            "bias": Number(closed=True),
        },
    ),
    "verify.ranks": Case(
        verify.ranks,
        {"values": DRAWS[0], "truth": DRAWS[1, :, 0]},
        {
            "values": Values(single=False, shorter=True),
            "truth": Values(single=False, shorter=True),
        },
    ),
    "verify.rank_band": Case(
        verify.rank_band,
        {"num_replications": 20, "num_draws": 9, "chance": 0.05, "simulations": 50},
        {
            "num_replications": Count(),
            "num_draws": Count(),
            "chance": Number(0.0, 1.0),
            "simulations": Count(),
        },
    ),
    **{
        f"verify.{function.__name__}": Case(
            function,
            {"found": np.arange(20) % 10, "num_draws": 9},
            {"found": Values((10.0, -1.0, 0.5), axes=False), "num_draws": Count()},
        )
        for function in (verify.rank_difference, verify.rank_distance)
    },
    "checks.labels": Case(
        checks.labels,
        {"y": Y, "num_classes": 2},
        {"y": Values(LABELS, axes=False, empty=False), "num_classes": Count(2)},
    ),
    "common.take": Case(
        lambda index: common.take({"a": DRAWS}, index), {"index": 3}, {"index": Index(4)}
    ),
    "training.train": Case(
        lambda num_steps, every: training.train(
            lambda a: (a**2).sum(), X[0], optax.sgd(0.1), num_steps, lambda a: a, every
        ),
        {"num_steps": 4, "every": 2},
        {"num_steps": Count(), "every": Count()},
    ),
    **{
        f"training.{function.__name__}": Case(
            function, {"rate": 0.1, "num_steps": 5}, {"rate": Number(), "num_steps": Count()}
        )
        for function in (training.decaying_adam, training.clipped_adam)
    },
    "plots.grid": Case(plots.grid, {"size": 5}, {"size": Count(2)}),
    "tempering.tempered_starts": Case(
        lambda power, num_started: tempering.tempered_starts(
            KEY,
            densities.flat_log_density(NETWORK),
            networks.parameter_shapes(NETWORK, 2),
            OBSERVED,
            power,
            num_started,
            num_warmup=20,
            num_samples=2,
        ),
        {"power": 0.5, "num_started": 2},
        {"power": Number(0.0, 1.0), "num_started": Count()},
    ),
    "tempering.warmed_up": Case(
        partial(tempering.warmed_up, KEY, normal),
        {
            "positions": STARTS,
            "data": X,
            "num_warmup": 20,
            "target_acceptance": 0.8,
            "max_tree_depth": 5,
        },
        {
            "positions": Values(axes=False),
            "num_warmup": Count(20),
            "target_acceptance": Number(0.0, 1.0),
            "max_tree_depth": Count(),
        },
    ),
    "tempering.agreed_starts": Case(
        partial(
            tempering.agreed_starts,
            KEY,
            hierarchical.log_density(NETWORK),
            mcmc.normal_starts(KEY, hierarchical.shapes(NETWORK, 3, 2), (2,)),
            densities.observe(TASKS.x_train, TASKS.y_train),
            num_warmup=20,
        ),
        {"power": 0.8, "least": 1, "most": 1, "times": 5.0},
        {
            "power": Number(0.0, 1.0),
            "least": Count(),
            "most": Count(),
            "times": Number(1.0, closed=True),
        },
    ),
    "smc.anneal": Case(
        lambda particles: smc.anneal(KEY, particles, normal, normal),
        {"particles": STARTS},
        {"particles": Values(axes=False)},
    ),
    **{
        f"copies.{function.__name__}": Case(
            function, {"draws": HIERARCHICAL, **others}, {"draws": Values(axes=False)}
        )
        for function, others in (
            (copies.align, {"reference": common.take(HIERARCHICAL, (0, 0))}),
            (copies.common_reference, {"num_starts": 1, "num_rounds": 1}),
        )
    },
}
