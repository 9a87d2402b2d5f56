"""What is asked of a fit: its numbers, ``summary(fit)``; a column's part in it, ``average(fit,
"value")``; what was believed before, ``priors(model)``.
"""

from helpers import predict
from helpers.diagnostics import arviz

import jax
import numpy as np
import pandas as pd

from tables import families, formulas, models, weights, written
from tables.fits import Fitted
from tables.models import Model


def summary(fit: Fitted, term: str | None = None) -> pd.DataFrame:
    """Return mean, standard deviation, central 95 %, R-hat and effective sample size of what is not
    fixed; the corner of the table says which level of a text, or class, others are compared with.

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
    found = {name: values for name, values in found.items() if not weights.is_fixed(values)}
    if not found:
        return pd.DataFrame(columns=["mean", "sd", "2.5 %", "97.5 %", "R-hat", "ESS"])
    table = arviz.summary(arviz.from_dict(found), kind="all", round_to="none").loc[[*found]]
    low, high = zip(
        *(np.quantile(values, [0.025, 0.975]) for values in found.values()), strict=True
    )
    kept = table[["mean", "sd"]].assign(**{"2.5 %": low, "97.5 %": high})
    kept = kept.assign(**{"R-hat": table["r_hat"], "ESS": table["ess_bulk"]})
    against = formulas.references(fit.model.common)
    if fit.model.family == "categorical":
        against[fit.model.outcome] = fit.model.classes[0]
    corner = ", ".join(f"{name}: against {level}" for name, level in against.items())
    return kept.rename_axis(corner or None)


def _named(name, values):
    """Return the scalars of a variable, [chain, draw], by name."""
    axes = values.dims[2:]
    found = {}
    for at in np.ndindex(*values.shape[2:]):
        if name.startswith("correlation") and at[0] <= at[1]:
            continue
        inside = ", ".join(str(values[axis].values[i]) for axis, i in zip(axes, at, strict=True))
        plain = name in ("coefficient",) or name.startswith("effect_")
        if name.endswith(f": {inside}"):
            inside = ""
        found[inside if plain else f"{name}[{inside}]" if inside else name] = values.values[
            ..., *at
        ]
    return found


def average(fit: Fitted, column: str, values: list | None = None) -> pd.DataFrame:
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
        known = [name for name in rows if name != fit.model.outcome]
        raise ValueError(f"column: given {column!r}, expected one of {known}")
    if values is None and pd.api.types.is_float_dtype(rows[column]):
        values = [float(v) for v in np.unique(np.quantile(rows[column], [0.1, 0.5, 0.9]))]
    elif values is None:
        values = [*dict.fromkeys(sorted(rows[column].unique()))]
    means = []
    with jax.enable_x64(True):
        for value in values:
            frame = rows.assign(**{column: value}).astype({column: rows[column].dtype})
            data = models.encode(fit.model, frame)
            means += [
                predict.by_chain(
                    lambda d, r=data: families.mean(written.outcomes(fit.model, d, r)).mean(0),
                    fit.draws,
                )
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
    """Return the prior of each parameter as text, by name, in the table's units.

    Not among them are a network's weights, N(0, 1) before they are scaled, and the cutpoints of an
    ordinal outcome, the first N(0, 2.5) and the logarithms of their gaps likewise.
    """
    return pd.Series(
        {name: families.text(prior) for name, prior in model.priors.items()}, name="prior"
    )
