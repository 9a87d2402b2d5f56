"""How well models predict rows that they have not seen, by row or by group:
``compare({"line": fit, "network": other})``.
"""

from helpers import diagnostics, mcmc, numpyro_models, predict
from helpers.common import stack, take
from helpers.diagnostics import arviz
from helpers.mcmc import Posterior

import warnings

import jax
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Key
from scipy.special import logsumexp

from tables import exact, families, fits, formulas, models, written
from tables.fits import Fitted
from tables.models import Model

MOST_K = 0.7  # Pareto k above which weights are not to be trusted (Vehtari et al. 2024)


def compare(found: dict[str, Fitted], by: str | None = None) -> pd.DataFrame:
    """Return how well each model predicts rows that it has not seen, the best first.

    By row: leave-one-out by Pareto smoothed importance sampling, ArviZ's; ``k`` is the largest
    Pareto k, and above 0.7 that row's number is not to be trusted. By group: each is predicted as
    one that is new, by fits without it, so that there is no k; standard errors are over groups.

    Args:
        found: fits of the same rows, by name.
        by: the column whose groups are left out, in ten parts where there are more.

    ValueError: fewer than two fits, fits of other outcomes.
    """
    if not isinstance(found, dict):
        raise ValueError(f"found: given {type(found).__name__}, expected a dict of fits by name")
    outcomes = [fit.model.data["y"] for fit in found.values()]
    if len(found) < 2 or any(not np.array_equal(outcomes[0], y) for y in outcomes[1:]):
        raise ValueError(
            "found: given other outcomes or one fit, expected two fits of the same rows"
        )
    if by is not None:
        return _compare_groups(found, by)
    each = {}
    for name, fit in found.items():
        with jax.enable_x64(True):
            values = log_likelihood(fit.model, fit.draws)
        data = arviz.from_dict({"none": values[..., 0]}, log_likelihood={"outcome": values})
        with warnings.catch_warnings():  # the table has k
            warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
            each[name] = arviz.loo(data, pointwise=True)
    with warnings.catch_warnings():  # ArviZ 0.23 on pandas 3
        warnings.filterwarnings("ignore", message="The inplace keyword", category=FutureWarning)
        warnings.filterwarnings(
            "ignore", message="The inplace keyword", category=DeprecationWarning
        )
        table = arviz.compare(each)
    worst = [float(each[name].pareto_k.max()) for name in table.index]
    if max(worst) > MOST_K:
        print(f"k above {MOST_K}: take differences for a hint, or compare by a column of groups")
    return table[["elpd_loo", "se", "elpd_diff", "dse", "p_loo"]].assign(k=worst)


def _compare_groups(found, by):
    of, names = formulas.groups((by,), next(iter(found.values())).model.rows)
    each = {}
    for i, (name, one) in enumerate(found.items()):
        rows = left_out(jax.random.key(i), one, by)
        each[name] = np.bincount(of, rows, len(names))
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


def left_out(key: Key[Array, ""], fit: Fitted, by: str, num_parts: int = 10) -> np.ndarray:
    """Return the log predictive density of each row, [row], by fits without its group.

    Groups are left out one by one, or in so many parts where there are more. The fits run side by
    side, each as long as the first, and say whether they can be used.

    Args:
        key: for everything that is random.
        fit: of all rows.
        by: the column that says which rows are of one group.
        num_parts: how many fits, at most.

    ValueError: a column that is not one of the model's groups.
    """
    model, factors = fit.model, {name for part in fit.model.parts for name in part.term.factors}
    if by not in factors:
        raise ValueError(f"by: given {by!r}, expected one of {sorted(factors)}")
    key_parts, key_starts, key_chains, key_effects = jax.random.split(key, 4)
    group, names = formulas.groups((by,), model.rows)
    order = np.asarray(jax.random.permutation(key_parts, len(names)))
    part = (order % min(num_parts, len(names)))[group]
    weights = [model.data.get("weights", 1.0) * (part != i) for i in range(part.max() + 1)]
    sums = [exact.sums(model, one) for one in weights] if model.exact else weights
    of, tasks = "exact" if model.exact else "weights", stack(sums)
    sizes = fit.data.posterior.sizes
    with jax.enable_x64(True):
        found = numpyro_models.of(written.written(model), model.data)
        starts = mcmc.normal_starts(key_starts, found.shapes, (len(sums), sizes["chain"]), 0.3)
        posterior = mcmc.sample(
            key_chains,
            lambda position, task, data: found.log_density(position, data | {of: task}),
            starts,
            tasks=tasks,
            data=model.data,
            num_samples=sizes["draw"],
            target_acceptance=0.9,
        )
        density, behind = np.zeros(len(group)), []
        for i, task in enumerate(sums):
            one = model._replace(data=model.data | {of: task})
            draws = fits.kept(one, found, Posterior(take(posterior.draws, i), None))
            if model.exact:
                draws |= fits.effects(jax.random.fold_in(key_effects, i), one, draws.pop("exact"))
            behind += [draws["coefficient"]]
            each = log_likelihood(one, draws)
            density = np.where(part == i, logsumexp(each, axis=(0, 1)), density)
        check = diagnostics.check(posterior, np.stack(behind))
    print(f"without a part of {by}:", diagnostics.describe(check))
    return density - np.log(sizes["chain"] * sizes["draw"])


def log_likelihood(model: Model, draws: dict) -> Float[np.ndarray, "chain draw row"]:
    """Return the log density of each training row's outcome under each draw."""
    rows = models.some_rows(model.data)

    def one(draw):
        found = written.outcomes(model, draw, rows)
        return families.log_likelihood(found, rows["y"], rows)

    return predict.by_chain(one, draws)
