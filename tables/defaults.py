"""What is believed of a model before its table is fitted, unless the reader says otherwise:
``defaults.priors(made)``.
"""

from typing import Any

import numpy as np
import numpyro.distributions as dist

from tables import families, weights

WIDE = 2.5  # scale of default priors, behind a log or logit link; before an identity, of a slope's
SHARP = 10.0  # of a network's last layer behind a logit link, so that classes may change abruptly


def spread(made: Any) -> tuple[float, float]:
    """Return mean and standard deviation of the outcome behind its link."""
    y, link = made.data["y"], families.FAMILIES[made.family].link
    if link == "identity":
        return float(y.mean()), float(y.std())
    if made.family in ("categorical", "ordinal"):
        return 0.0, 1.0
    if link == "log":
        return float(np.log(max(y.sum(), 0.5) / np.exp(made.data["offset"]).sum())), 1.0
    of = made.data.get("trials", np.ones(len(y)))
    share = (y.sum() + 0.5) / (of.sum() + 1)
    return float(np.log(share / (1 - share))), 1.0


def priors(made: Any) -> dict[str, dist.Distribution]:
    """Return the default prior of each parameter, by name, in the table's units."""
    mean, sd = made.spread
    x, found = made.data["x"], {}
    wide = 1.0 if families.FAMILIES[made.family].link == "identity" else WIDE
    for i, name in enumerate(made.columns):
        here = name == "Intercept"
        scale = WIDE * sd / (1 if here else x[:, i].std())
        found[name] = dist.Normal(mean if here else 0.0, float(scale))
    for part, z in zip(made.parts, made.data["z"], strict=True):
        for i, name in enumerate(part.columns):
            scale = wide * sd / (1 if name == "Intercept" else z[:, i].std())
            found[part.sd_of(name)] = dist.HalfNormal(float(scale))
        if part.term.correlated and len(part.columns) > 1:
            size = len(part.columns) * made.num_outputs
            found[f"correlation_{part.term.name}"] = dist.LKJCholesky(size, 1.0)
        found |= {
            part.sd_of(leaf): _of_leaf(made, leaf, part.term.inner == "separate")
            for leaf in weights.leaves(made, part)
        }
    for leaf in weights.leaves(made):
        learns = leaf == weights.NOISE or leaf == weights.last_kernel(made)
        found[f"sd_network[{leaf}]"] = _of_leaf(made, leaf, True) if learns else dist.Delta(1.0)
    extra = {
        "degrees": dist.Gamma(2.0, 0.1), "dispersion": dist.HalfNormal(1.0),
        "inflation": dist.Beta(1.0, 1.0),
    }  # fmt: skip
    for name in families.FAMILIES[made.family].extra:
        if name == "noise" and made.noise is not None:
            for i, column in enumerate(made.noise.column_names):
                scale = 1.0 if column == "Intercept" else made.data["noise"][:, i].std()
                loc = float(np.log(sd)) if column == "Intercept" else 0.0
                found[f"noise[{column}]"] = dist.Normal(loc, float(WIDE / scale))
        elif name == "noise":
            found["noise"] = dist.HalfNormal(sd)
        elif name in extra:
            found[name] = extra[name]
    return found


def _of_leaf(made, leaf, whole):
    """Return what is believed of the standard deviation of a leaf, in a network that is a whole or
    in what is added to one.
    """
    if not whole or leaf != weights.last_kernel(made):
        return dist.HalfNormal(1.0)
    return dist.HalfNormal(SHARP if families.FAMILIES[made.family].link == "logit" else WIDE)


def with_given(made: Any, given: dict) -> dict[str, dist.Distribution]:
    """Return the prior of each parameter, by name: the reader's, or the default one.

    ValueError: what is no prior of this model, a parameter fixed where it cannot be.
    """
    usual = priors(made)
    if odd := [
        name
        for name, prior in given.items()
        if name not in usual or not isinstance(prior, dist.Distribution)
    ]:
        raise ValueError(
            f"priors: given {odd}, expected NumPyro distributions by names among {[*usual]}"
        )
    for name, prior in given.items():
        if weights.fixed(prior) and not _may_be(usual[name], prior.v):
            raise ValueError(
                f"priors: given a Delta for {name} at {prior.v}, expected one number that "
                f"{families.text(usual[name])} may be; or leave the term out"
            )
    return usual | given


def _may_be(prior, value):
    """Return whether a parameter of this default prior may be fixed at a value."""
    if isinstance(prior, dist.LKJCholesky) or np.ndim(value):
        return False
    support = dist.constraints.positive if weights.fixed(prior) else prior.support
    return bool(np.isfinite(value) and support(value))
