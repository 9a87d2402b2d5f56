"""What is asked of a fit: its numbers, the next rows, another model, a column's part in it."""

from helpers import checks
from helpers.diagnostics import arviz

import warnings
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key
from numpyro import handlers

from tables import families, fits, formulas, models, written
from tables.fits import Fit, mapped
from tables.models import Model

CANDIDATES = 200  # effects of a new group that its rows choose among, in each draw
MOST_K = 0.7  # Pareto k above which weights are not to be trusted (Vehtari et al. 2024)


class Forecast(NamedTuple):
    """Rows under each draw."""

    mean: Float[np.ndarray, "chain draw row *class"]  # of the outcome; probabilities of classes
    outcome: Float[np.ndarray, "chain draw row"]  # drawn; a class by its index
    pareto_k: float | None = None  # of the weights by rows that were given; above 0.7 fit again


def summary(fit: Fit, term: str | None = None) -> pd.DataFrame:
    """Return mean, standard deviation, central 95 %, R-hat and effective sample size.

    Args:
        fit: of ``fits.fit``.
        term: of groups, whose effects are returned; by default all other parameters, in the table's
            units: coefficients, standard deviations and correlations of groups, noise.

    ValueError: a term that the model does not have.
    """
    posterior, found = fit.data.posterior, {}
    terms = [part.term.name for part in fit.model.parts]
    if term is not None and term not in terms:
        raise ValueError(f"term: given {term!r}, expected one of {terms}")
    for name, values in posterior.items():
        if name.startswith("effect_") == (term is None) or (term and name != f"effect_{term}"):
            continue
        if name != "network":
            found |= _named(name, values)
    table = arviz.summary(arviz.from_dict(found), kind="all", round_to="none").loc[[*found]]
    low, high = zip(
        *(np.quantile(values, [0.025, 0.975]) for values in found.values()), strict=True
    )
    kept = table[["mean", "sd"]].assign(**{"2.5 %": low, "97.5 %": high})
    return kept.assign(**{"R-hat": table["r_hat"], "ESS": table["ess_bulk"]})


def _named(name, values):
    """Return the scalars of a variable, [chain, draw], by name."""
    axes = values.dims[2:]
    found = {}
    for at in np.ndindex(*values.shape[2:]):
        if name.startswith("correlation") and at[0] <= at[1]:
            continue
        inside = ", ".join(str(values[axis].values[i]) for axis, i in zip(axes, at, strict=True))
        plain = name in ("coefficient",) or name.startswith("effect_")
        found[inside if plain else f"{name}[{inside}]" if inside else name] = values.values[
            ..., *at
        ]
    return found


def predict(
    key: Key[Array, ""],
    fit: Fit,
    frame: pd.DataFrame,
    *,
    given: pd.DataFrame | None = None,
    groups: bool = True,
) -> Forecast:
    """Return the outcome of rows under each draw, with the noise of a single outcome.

    A group that training rows did not have gets effects of its own from their distribution in every
    draw. Rows of it whose outcomes are known already, ``given``, choose among such effects and
    weigh the draws, so that nothing is fitted again; the Pareto k says whether that may be trusted.

    Args:
        key: for new groups and outcomes.
        fit: of ``fits.fit``.
        frame: the rows; an outcome is not needed.
        given: rows with outcomes, which training rows did not have.
        groups: False for an average group, whose effects are 0.

    ValueError: as ``models.encode``; new groups of several terms among rows that are given.
    """
    num_given, y = 0, np.zeros(0)
    if given is not None:
        num_given, y = len(given), models.encode(fit.model, given)["y"]
        frame = pd.concat([given, frame], ignore_index=True)
    frame = frame.drop(columns=fit.model.outcome, errors="ignore")
    with jax.enable_x64(True):
        data = models.encode(fit.model, frame)
        rows = _rows(data, np.s_[num_given:])
        seen = _rows(data, np.s_[:num_given]) | {"y": y}
        draw_one = partial(_forecast, fit.model, rows, seen, groups)
        draws = {name: values.values for name, values in fit.data.posterior.items()}
        sizes = draws["coefficient"].shape[:2]
        keys = jax.random.split(key, sizes)
        mean, outcome, weight = mapped(draw_one, keys, draws)
    if given is None:
        return Forecast(mean, outcome)
    log_weights, pareto_k = arviz.psislw(weight.ravel())
    if pareto_k > MOST_K:
        warnings.warn(
            f"Pareto k {pareto_k:.2f}, above {MOST_K}: fit again with the given rows", stacklevel=2
        )
    place = (np.arange(weight.size) + 0.5) / weight.size
    total = np.cumsum(np.exp(log_weights))
    chosen = np.searchsorted(total / total[-1], place)

    def again(values):
        return values.reshape(-1, *values.shape[2:])[chosen].reshape(values.shape)

    return Forecast(again(mean), again(outcome), float(pareto_k))


def _rows(data, at):
    """Return some of the rows that ``models.encode`` returned."""
    kept = {name: part for name, part in data.items() if name != "exact"}
    return jax.tree.map(lambda leaf: leaf[at], kept)


def _forecast(made, rows, seen, groups, key, draw):
    """Return mean and outcome of rows under one draw, and the log weight by rows that were seen."""
    key_new, key_choice, key_outcome = jax.random.split(key, 3)
    new = [
        int(max(np.max(at[i], initial=-1) for at in (rows["group"], seen["group"])))
        + 1
        - len(part.levels)
        for i, part in enumerate(made.parts)
    ]
    weight = jnp.zeros(())
    if not groups:
        names = [f"effect_{part.term.name}" for part in made.parts]
        more = [max(0, one) for one in new]
        draw = draw | {
            name: jnp.zeros((len(draw[name]) + n, *draw[name].shape[1:]))
            for name, n in zip(names, more, strict=True)
        }
    elif len(seen["y"]):
        draw, weight = _chosen(made, seen, new, key_new, key_choice, draw)
    else:
        draw = draw | _with_new(made, new, key_new, draw)
    found = written.outcomes(made, draw, rows)
    return found.mean, found.sample(key_outcome), weight


def _with_new(made, new, key, draw):
    """Return effects of each term, those of new groups drawn from their distribution."""
    found = {}
    for i, part in enumerate(made.parts):
        name, more = part.term.name, max(0, new[i])
        effect, sd = draw[f"effect_{name}"], draw[f"sd_{name}"].reshape(-1)
        sd = written.of_weights(made, part, sd) if part.spec is None else sd
        unit = jax.random.normal(jax.random.fold_in(key, i), (more, sd.size))
        if f"correlation_{name}" in draw:
            matrix = draw[f"correlation_{name}"] + 1e-9 * jnp.eye(sd.size)
            unit = unit @ jnp.linalg.cholesky(matrix).T
        own = (unit * sd).reshape(more, *effect.shape[1:])
        found[f"effect_{name}"] = jnp.concatenate([effect, own])
    return found


def _chosen(made, seen, new, key_new, key_choice, draw):
    """Return a draw whose new groups' effects were chosen by rows that were seen, and what the draw
    weighs by them.
    """
    here = [i for i, at in enumerate(seen["group"]) if (at >= len(made.parts[i].levels)).any()]
    if len(here) > 1:
        names = [made.parts[i].term.name for i in here]
        raise ValueError(f"given: new groups of {names}, expected new ones of one term")

    def of(key):
        effects = _with_new(made, new, key, draw)
        found = written.outcomes(made, draw | effects, seen)
        return effects, families.log_likelihood(found, seen["y"], seen)

    effects, each = jax.vmap(of)(jax.random.split(key_new, CANDIDATES))
    if not here:
        return draw | jax.tree.map(lambda leaf: leaf[0], effects), each[0].sum()
    part, at = made.parts[here[0]], seen["group"][here[0]]
    first, name = len(part.levels), f"effect_{part.term.name}"
    own = jax.nn.one_hot(at - first, new[here[0]])  # of a known group: none
    of_group = each @ own  # [candidate, new group]
    choice = jax.random.categorical(key_choice, of_group, axis=0)
    effect = effects[name][0].at[first:].set(effects[name][choice, first + jnp.arange(len(choice))])
    weight = logsumexp(of_group, axis=0).sum() - np.log(CANDIDATES) * len(choice)
    weight = weight + (each[0] * (at < first)).sum()
    return draw | jax.tree.map(lambda leaf: leaf[0], effects) | {name: effect}, weight


def compare(found: dict[str, Fit], by: str | None = None) -> pd.DataFrame:
    """Return how well each model predicts rows that it has not seen, the best first.

    By row: leave-one-out by Pareto smoothed importance sampling, ArviZ's; ``k`` is the largest
    Pareto k, and above 0.7 that row's number is not to be trusted. By group: each is predicted as
    one that is new, by fits without it, so that there is no k; standard errors are over groups.

    Args:
        found: fits of the same rows, by name.
        by: the column whose groups are left out, in ten parts where there are more.

    ValueError: fewer than two fits, fits of other outcomes.
    """
    outcomes = [fit.model.data["y"] for fit in found.values()]
    if len(found) < 2 or any(not np.array_equal(outcomes[0], y) for y in outcomes[1:]):
        raise ValueError(
            "found: given other outcomes or one fit, expected two fits of the same rows"
        )
    if by is not None:
        return _compare_groups(found, by)
    each = {}
    for name, fit in found.items():
        draws = {variable: v.values for variable, v in fit.data.posterior.items()}
        with jax.enable_x64(True):
            values = fits.log_likelihood(fit.model, draws)
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
    return table[["elpd_loo", "se", "elpd_diff", "dse", "p_loo"]].assign(k=worst)


def _compare_groups(found, by):
    of, names = formulas.groups((by,), next(iter(found.values())).model.rows)
    each = {}
    for i, (name, one) in enumerate(found.items()):
        rows = fits.left_out(jax.random.key(i), one, by)
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


def average(fit: Fit, column: str, values: list | None = None) -> pd.DataFrame:
    """Return the mean outcome over training rows, had all of them the same value of a column, and
    by how much it differs from that at the first value.

    What a network has for a coefficient; and on the scale of the outcome, whatever the link.

    Args:
        fit: of ``fits.fit``.
        column: of the table.
        values: of the column; by default its levels, or the 10, 50 and 90 % quantiles of numbers.

    ValueError: a column that the model does not use, values that it did not have.
    """
    rows = fit.model.rows
    if column not in rows or column == fit.model.outcome:
        raise ValueError(f"column: given {column!r}, expected one of {[*rows]}")
    if values is None and pd.api.types.is_float_dtype(rows[column]):
        values = [float(v) for v in np.unique(np.quantile(rows[column], [0.1, 0.5, 0.9]))]
    elif values is None:
        values = [*dict.fromkeys(sorted(rows[column].unique()))]
    means = []
    with jax.enable_x64(True):
        draws = {name: v.values for name, v in fit.data.posterior.items()}
        for value in values:
            frame = rows.assign(**{column: value}).astype({column: rows[column].dtype})
            data = models.encode(fit.model, frame)
            means += [
                mapped(lambda d, r=data: written.outcomes(fit.model, d, r).mean.mean(0), draws)
            ]
    table = {}
    for value, mean in zip(values, means, strict=True):
        for what, of in (("average", mean), ("difference", mean - means[0])):
            for i in np.ndindex(mean.shape[2:]):
                low, high = np.quantile(of[..., *i], [0.025, 0.975])
                label = (value, *(fit.model.classes[j] for j in i), what)
                table[label] = {"mean": of[..., *i].mean(), "2.5 %": low, "97.5 %": high}
    return pd.DataFrame(table).T.rename_axis([column, *["class"] * (mean.ndim - 2), ""])


def priors(model: Model) -> pd.Series:
    """Return the prior of each parameter as text, by name, in the table's units."""

    def text(prior):
        names = [
            name
            for name in prior.arg_constraints
            if name
            in (
                "loc",
                "scale",
                "concentration",
                "rate",
                "concentration0",
                "concentration1",
                "df",
                "low",
                "high",
            )
        ]
        return (
            f"{type(prior).__name__}({', '.join(f'{getattr(prior, name):.4g}' for name in names)})"
        )

    return pd.Series({name: text(prior) for name, prior in model.priors.items()}, name="prior")


def prior_predictive(key: Key[Array, ""], model: Model, num_draws: int = 1000) -> Forecast:
    """Return outcomes of the training rows that the priors expect, one chain of draws.

    Args:
        key: for everything that is random.
        model: of ``models.model``.
        num_draws: how many.

    ValueError: no draws.
    """
    checks.count(num_draws=num_draws)
    plain = model._replace(exact=False)
    with jax.enable_x64(True):
        rows = _rows(model.data, np.s_[:])

        def one(key):
            key_prior, key_outcome = jax.random.split(key)
            seeded = handlers.seed(written.written(plain), key_prior)
            sites = handlers.trace(seeded).get_trace(rows)
            draw = {n: s["value"] for n, s in sites.items() if s["type"] == "deterministic"}
            found = written.outcomes(plain, draw, rows)
            return found.mean, found.sample(key_outcome)

        mean, outcome = mapped(one, jax.random.split(key, (1, num_draws)))
    return Forecast(mean, outcome)
