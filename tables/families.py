"""Outcomes: what may be said of them, and their distributions, in NumPyro's words.

``families.distribution("poisson", output, values, data)`` is that of each row's outcome.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
from jaxtyping import Array, Float

from tables.formulas import as_text


class Family(NamedTuple):
    """What an outcome is."""

    values: str  # "numbers", "positive", "shares", "counts", "classes"
    link: str  # of its mean: "identity", "log", "logit"
    extra: tuple[str, ...] = ()  # parameters beside the mean's


FAMILIES = {
    "normal": Family("numbers", "identity", ("noise",)),
    "student t": Family("numbers", "identity", ("noise", "degrees")),
    "bernoulli": Family("classes", "logit"),
    "binomial": Family("counts", "logit"),
    "categorical": Family("classes", "logit"),
    "ordinal": Family("classes", "logit", ("cutpoint",)),
    "poisson": Family("counts", "log"),
    "negative binomial": Family("counts", "log", ("dispersion",)),
    "zero-inflated poisson": Family("counts", "log", ("inflation",)),
    "zero-inflated negative binomial": Family("counts", "log", ("dispersion", "inflation")),
    "gamma": Family("positive", "log", ("dispersion",)),
    "beta": Family("shares", "logit", ("dispersion",)),
}
CENSORED = ("normal", "student t", "gamma")  # families whose outcome may be a bound


def distribution(
    family: str, output: Float[Array, "row output"], values: dict, data: dict
) -> dist.Distribution:
    """Return the distribution of each row's outcome, as ``outcome`` has it.

    Args:
        family: one of `FAMILIES`.
        output: what the mean is made of, behind its link; a second column is added to the log of
            the noise, but of classes, each of which has one.
        values: the extra parameters; ``noise`` may differ by row.
        data: with ``trials`` of a binomial outcome, and ``censored`` where there is any.
    """
    if family == "categorical":  # the first class is 0 on every scale
        return dist.Categorical(logits=jnp.pad(output, ((0, 0), (1, 0))))
    one = output[:, 0]
    if family == "ordinal":
        return dist.OrderedLogistic(one, values["cutpoint"])
    if family == "bernoulli":
        return dist.BernoulliLogits(one)
    if family == "binomial":
        return dist.BinomialLogits(one, total_count=data["trials"].astype(int))
    if family in ("normal", "student t"):
        noise = values["noise"] * (jnp.exp(output[:, 1]) if output.shape[1] > 1 else 1.0)
        if family == "normal":
            return dist.Normal(one, noise)
        return dist.StudentT(values["degrees"], one, noise)
    if family == "beta":
        return dist.BetaProportion(jax.nn.sigmoid(one), 1 / values["dispersion"])
    mean = jnp.exp(one)
    if family == "gamma":
        return dist.Gamma(1 / values["dispersion"], 1 / (values["dispersion"] * mean))
    counts = dist.Poisson(mean)
    if "negative binomial" in family:
        # a gradient takes half the time of one by NegativeBinomial2
        size, logits = 1 / values["dispersion"], one + jnp.log(values["dispersion"])
        counts = dist.NegativeBinomialLogits(size, logits=logits)
    if "zero-inflated" in family:
        return dist.ZeroInflatedDistribution(counts, gate=values["inflation"])
    return counts


def log_likelihood(
    found: dist.Distribution, y: Float[Array, " row"], data: dict
) -> Float[Array, " row"]:
    """Return the log density of each row's outcome; the log probability of what lies beyond it,
    where the table says that it is a bound: 1 for more than is written, -1 for less.
    """
    if "censored" not in data:
        classes = isinstance(found, (dist.CategoricalLogits, dist.CategoricalProbs))
        return found.log_prob(y.astype(int) if classes else y)
    above, below = data["censored"] > 0, data["censored"] < 0
    right = dist.RightCensoredDistribution(found, above).log_prob(y)
    return jnp.where(below, dist.LeftCensoredDistribution(found, below).log_prob(y), right)


def mean(found: dist.Distribution) -> Float[Array, "row *class"]:
    """Return the mean of each row's outcome; of classes, their probabilities."""
    classes = isinstance(found, (dist.CategoricalLogits, dist.CategoricalProbs))
    return found.probs if classes else found.mean


def text(prior: dist.Distribution) -> str:
    """Return a distribution as one writes it, such as ``Normal(0, 2.5)``."""
    named = "loc", "scale", "concentration", "rate", "df", "low", "high", "v"
    named += "concentration1", "concentration0"
    values = [f"{getattr(prior, name):.4g}" for name in prior.arg_constraints if name in named]
    return f"{type(prior).__name__}({', '.join(values)})"


def option(name: str, column: str, values: pd.Series) -> Float[np.ndarray, " row"]:
    """Return the column of an option as numbers.

    ValueError: what it cannot be, such as an exposure of 0.
    """
    right = {
        "trials": ("whole numbers of 1 or more", lambda v: (v >= 1) & (v == np.round(v))),
        "exposure": ("numbers above 0", lambda v: v > 0),
        "offset": ("numbers", lambda v: v == v),
        "weights": ("numbers of 0 or more, not all 0", lambda v: (v >= 0) & (v.sum() > 0)),
        "censored": ("0, 1 or -1", lambda v: np.isin(v, (0, 1, -1))),
    }
    expected, fits = right[name]
    if not (pd.api.types.is_numeric_dtype(values) and fits(values.to_numpy(float)).all()):
        raise ValueError(f"{column}: given {values.iloc[:5].tolist()}, expected {name}: {expected}")
    return values.to_numpy(float)


def outcome(
    family: str, name: str, column: pd.Series, classes: list[str] | None = None
) -> tuple[Float[np.ndarray, " row"], list[str]]:
    """Return outcomes as numbers, and the classes that they are the indices of, if any.

    The order of classes is a Categorical's own, that of numbers, or the alphabet's; of two classes
    the last is what is predicted, as 1 is of 0 and 1, and True of False and True.

    Args:
        family: one of `FAMILIES`.
        name: of the column, for the error.
        column: of ``formulas.clean``.
        classes: of earlier rows.

    ValueError: values that the family does not have, an ordinal outcome of text without an order.
    """
    kind = FAMILIES[family].values
    if kind == "classes":
        return _classes(family, name, column, classes)
    if not pd.api.types.is_numeric_dtype(column) or column.dtype == bool:
        raise ValueError(f"{name}: given {column.dtype}, expected numbers for family={family!r}")
    y = column.to_numpy(float)
    right = {
        "numbers": ("numbers", y == y),
        "positive": ("numbers above 0", y > 0),
        "shares": ("numbers between 0 and 1", (y > 0) & (y < 1)),
        "counts": ("whole numbers of 0 or more", (y >= 0) & (y == np.round(y))),
    }
    expected, fits = right[kind]
    if not fits.all():
        given = f"{y[~fits][0]:g} in row {np.flatnonzero(~fits)[0]}"
        raise ValueError(f"{name}: given {given}, expected {expected} for family={family!r}")
    return y, []


def _classes(family, name, column, classes):
    if classes is None:
        if isinstance(column.dtype, pd.CategoricalDtype):
            found = [str(one) for one in column.cat.categories if (column == one).any()]
        elif family == "ordinal" and not pd.api.types.is_numeric_dtype(column):
            raise ValueError(
                f"{name}: given text, expected an order: pd.Categorical(frame[{name!r}], "
                "[lowest, ..., highest], ordered=True), or numbers"
            )
        else:
            found = [as_text(one) for one in sorted(column.unique())]
        least, most = (2, 2) if family == "bernoulli" else (3, 99)
        if not least <= len(found) <= most:
            raise ValueError(
                f"{name}: given the classes {found[:9]}, expected {least} to {most} of them "
                f"for family={family!r}"
            )
        classes = found
    index = pd.Index(classes).get_indexer([as_text(one) for one in column])
    if (index < 0).any():
        raise ValueError(
            f"{name}: given {as_text(column[index < 0].iloc[0])!r}, expected {classes}"
        )
    return index.astype(float), classes
