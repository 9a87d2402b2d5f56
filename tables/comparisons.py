"""How well models predict rows that they have not seen, by row or by group:
``compare({"line": fit, "network": other})``.
"""

from helpers import checks, diagnostics, mcmc, numpyro_models, predict
from helpers.common import stack, take
from helpers.diagnostics import Check, arviz
from helpers.mcmc import Posterior

import warnings
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int, Key
from scipy.special import logsumexp

from tables import exact, families, fits, formulas, models, weights, written
from tables.fits import Fitted
from tables.models import Model

MOST_K = 0.7  # Pareto k above which weights are not to be trusted (Vehtari et al. 2024)
PARTS = 10
CAREFUL = 0.99  # target acceptance of fits that are run again


class LeftOut(NamedTuple):
    """What fits without a part say of that part."""

    by_chain: Float[np.ndarray, "chain row"]  # log predictive density of each row
    check: Check  # whether these fits can be used

    @property
    def density(self) -> Float[np.ndarray, " row"]:
        """The log predictive density of each row, of all chains together."""
        return logsumexp(self.by_chain, axis=0) - np.log(len(self.by_chain))


def compare(
    found: dict[str, Fitted], by: str | None = None, parts: int | None = None
) -> pd.DataFrame:
    """Return how well each model predicts rows that it has not seen, the best first.

    By row: leave-one-out by Pareto smoothed importance sampling, ArviZ's; ``k`` is the largest
    Pareto k, and above 0.7 that row's number is not to be trusted. Then ask for ``parts=10``: each
    row is predicted by fits without its tenth of the rows, so that there is no k. By group: each is
    predicted as one that is new, by fits without it; standard errors are over groups.

    Args:
        found: fits of the same rows, by name.
        by: the column whose groups are left out, in ten parts where there are more.
        parts: how many fits a model, each without a part of the rows, or of the groups.

    ValueError: fewer than two fits, fits of other outcomes, one part, other than a column of groups
        that all models have.
    """
    if not isinstance(found, dict):
        raise ValueError(f"found: given {type(found).__name__}, expected a dict of fits by name")
    outcomes = [fit.model.data["y"] for fit in found.values()]
    if len(found) < 2 or any(not np.array_equal(outcomes[0], y) for y in outcomes[1:]):
        raise ValueError(
            "found: given other outcomes or one fit, expected two fits of the same rows"
        )
    if by is not None or parts is not None:
        parts = PARTS if parts is None else parts
        checks.count(least=2, parts=parts)
        return _compare_refitted(found, by, parts)
    each = {name: by_importance(fit) for name, fit in found.items()}
    with warnings.catch_warnings():  # ArviZ 0.23 on pandas 3
        warnings.filterwarnings("ignore", message="The inplace keyword", category=FutureWarning)
        warnings.filterwarnings(
            "ignore", message="The inplace keyword", category=DeprecationWarning
        )
        table = arviz.compare(each)
    worst = [float(each[name].pareto_k.max()) for name in table.index]
    if max(worst) > MOST_K:
        print(f"k above {MOST_K}: take differences for a hint, or ask for parts=10: fits again")
    return table[["elpd_loo", "se", "elpd_diff", "dse", "p_loo"]].assign(k=worst)


def by_importance(fit: Fitted) -> arviz.ELPDData:
    """Return the log density of each training row by the others, by Pareto smoothed importance
    sampling, and its Pareto k.
    """
    with jax.enable_x64(True):
        values = log_likelihood(fit.model, fit.draws)
    data = arviz.from_dict({"none": values[..., 0]}, log_likelihood={"outcome": values})
    with warnings.catch_warnings():  # whoever asks has k
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        return arviz.loo(data, pointwise=True)


def _compare_refitted(found, by, parts):
    for one in found.values():
        factors = sorted({*one.model.factors})
        if by is not None and by not in factors:
            raise ValueError(f"by: given {by!r}, expected one of {factors}, groups of {one.model}")
    rows, each = next(iter(found.values())).model.rows, {}
    group = np.arange(len(rows)) if by is None else formulas.groups((by,), rows)[0]
    key_parts, *keys = jax.random.split(jax.random.key(0), 1 + len(found))
    part = parts_of(key_parts, group, parts)
    for key, (name, one) in zip(keys, found.items(), strict=True):
        left = left_out(key, one, part)
        each[name] = np.bincount(group, left.density)
        verdict = f"{name}, parts of {by or 'rows'} left out: {diagnostics.describe(left.check)}"
        print(verdict)
        if not left.check.ok:
            warnings.warn(verdict, stacklevel=3)
    best = max(each, key=lambda name: each[name].sum())

    def error(values):
        return np.sqrt(len(values) * values.var(ddof=1))

    table = {
        name: {
            "elpd_loo": values.sum(),
            "se": error(values),
            "elpd_diff": (each[best] - values).sum(),
            "dse": error(each[best] - values),
        }
        for name, values in sorted(each.items(), key=lambda one: -one[1].sum())
    }
    return pd.DataFrame(table).T


def parts_of(
    key: Key[Array, ""], group: Int[np.ndarray, " row"], num_parts: int = PARTS
) -> Int[np.ndarray, " row"]:
    """Return in which part each row is, groups at random in as many parts of like size, or each
    in one of its own where they are fewer.
    """
    order = np.asarray(jax.random.permutation(key, int(group.max()) + 1))
    return (order % min(num_parts, len(order)))[group]


def left_out(key: Key[Array, ""], fit: Fitted, part: Int[np.ndarray, " row"]) -> LeftOut:
    """Return the log predictive density of each row by a fit without the rows of its part.

    The fits, one a part, run side by side, each as long as the first; if they cannot be used, once
    more with shorter steps and twice as long.

    Args:
        key: for everything that is random.
        fit: of all rows.
        part: of each row, such as ``parts_of`` returns.
    """
    attrs = fit.data.attrs
    lengths = {
        "num_warmup": int(attrs["num_warmup"]),
        "num_samples": fit.data.posterior.sizes["draw"],
    }
    target, depth = float(attrs["target_acceptance"]), int(attrs.get("max_tree_depth", 10))
    again = partial(_refitted, fit=fit, part=part, max_tree_depth=depth)
    found = again(key, target_acceptance=target, **lengths)
    if found.check.ok:
        return found
    longer = {name: 2 * length for name, length in lengths.items()}
    key = jax.random.fold_in(key, 1)
    return again(key, target_acceptance=max(target, CAREFUL), **longer)


def _refitted(key, fit, part, **lengths):
    """Return what fits of these lengths say."""
    model, num_chains = fit.model, fit.data.posterior.sizes["chain"]
    key_starts, key_chains, key_effects = jax.random.split(key, 3)
    left = [model.data.get("weights", 1.0) * (part != i) for i in range(part.max() + 1)]
    sums = [exact.sums(model, one) for one in left] if model.exact else left
    of, tasks = "exact" if model.exact else "weights", stack(sums)
    with jax.enable_x64(True):
        found = numpyro_models.of(written.written(model), model.data)
        starts = weights.starts(key_starts, found.shapes, (len(sums), num_chains))
        posterior = mcmc.sample(
            key_chains,
            lambda position, task, data: found.log_density(position, data | {of: task}),
            starts,
            tasks=tasks,
            data=model.data,
            **lengths,
        )
        density, behind = np.zeros((num_chains, len(part))), []
        for i, task in enumerate(sums):
            one = model._replace(data=model.data | {of: task})
            draws = fits.kept(one, found, Posterior(take(posterior.draws, i), None))
            if model.exact:
                draws |= fits.effects(jax.random.fold_in(key_effects, i), one, draws.pop("exact"))
            behind += [written.outputs(one, draws)]
            each = log_likelihood(one, draws)
            density = np.where(part == i, logsumexp(each, axis=1), density)
        check = diagnostics.check(posterior, np.stack(behind))
    return LeftOut(density - np.log(lengths["num_samples"]), check)


def log_likelihood(model: Model, draws: dict) -> Float[np.ndarray, "chain draw row"]:
    """Return the log density of each training row's outcome under each draw."""
    rows = models.some_rows(model.data)

    def one(draw):
        found = written.outcomes(model, draw, rows)
        return families.log_likelihood(found, rows["y"], rows)

    return predict.by_chain(one, draws)
