"""The model of a table in NumPyro's words, ``written(made)``, and what stands behind the link,
``output(made, values, data)``.

What the sampler sees has no units: coefficients are divided by the scales of their priors, effects
of groups by their standard deviations, unless their data pin them. What is kept is in the table's.
"""

from helpers import predict

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from tables import exact, families, models, weights
from tables.models import Model, Part

SEEN = 100  # rows whose predictions are checked
UNITS = {dist.Normal: dist.Normal(0, 1), dist.HalfNormal: dist.HalfNormal(1)}


def written(made: Model) -> Callable[[dict], None]:
    """Return the NumPyro model, a function of the arrays that ``models.encode`` returns."""

    def numpyro_model(data):
        mean = _sampled(made, "coefficients", made.columns, (made.num_outputs,))
        values = {"mean": mean, **_network(made), **_extra(made, data)}
        lowers = [_lower(made, part) for part in made.parts]
        if made.exact:
            likelihood = exact.log_density(made, data["exact"], mean, values["noise"], lowers)
        else:
            values["effect"] = [
                _effect(made, part, lower, mean)
                for part, lower in zip(made.parts, lowers, strict=True)
            ]
            x = data["x"] - made.center
            z = tuple(z - part.center for z, part in zip(data["z"], made.parts, strict=True))
            behind = output(made, values, data | {"x": x, "z": z})
            found = families.distribution(made.family, behind, values, data)
            each = families.log_likelihood(found, data["y"], data)
            likelihood = (each * data.get("weights", 1.0)).sum()
        numpyro.factor("outcome", likelihood)
        for name, value in in_units(made, values, lowers).items():
            numpyro.deterministic(name, value)

    return numpyro_model


def output(made: Model, values: dict, data: dict) -> Float[Array, "row output"]:
    """Return what stands behind the link.

    Args:
        made: the model.
        values: ``mean``, the coefficients [column, output]; ``effect``, by term [level, column,
            output], of a network's weights [level, weight]; ``network`` [weight] if there is one.
        data: as ``models.encode`` returns it.
    """
    found = data["offset"][:, None] + data["x"] @ values["mean"]
    net = values.get("network", 0.0)  # none where each group has one of its own
    for part, z, group, effect in zip(
        made.parts, data["z"], data["group"], values["effect"], strict=True
    ):
        if part.spec is None:
            net = net + effect[group]  # [row, weight]
        else:
            found = found + (z[..., None] * effect[group]).sum(axis=1)
    if made.network is None:
        return found
    unravel = weights.layout(made).unravel

    def of(vector, inputs):
        return made.network.apply(unravel(vector), inputs)

    behind = (jax.vmap(of) if net.ndim == 2 else of)(net, data["inputs"])
    behind = behind.reshape(len(found), -1)
    if not made.noisy:
        return found + made.spread[1] * behind
    return jnp.hstack([found + made.spread[1] * behind[:, :1], behind[:, 1:]])


def _sampled(made, site, names, shape=()):
    """Sample a vector of parameters, [name, *shape], in the table's units: as one site in units of
    their priors' scales, or each by itself under a prior of another kind; but what a prior fixes.
    """
    found = jnp.zeros((len(names), *shape))
    for kind in {type(made.priors[name]): None for name in names}:
        at = np.array([i for i, name in enumerate(names) if type(made.priors[name]) is kind])
        of = [made.priors[names[i]] for i in at]
        if kind in UNITS:
            unit = UNITS[kind].expand([len(at), *shape]).to_event(1 + len(shape))
            base = numpyro.sample(f"{site} {kind.__name__}", unit)
            loc, scale = (
                np.array([float(getattr(one, name, 0.0)) for one in of]).reshape(
                    -1, *[1] * len(shape)
                )
                for name in ("loc", "scale")
            )
            drawn = loc + scale * base
        elif kind is dist.Delta:
            drawn = jnp.stack([jnp.broadcast_to(1.0 * one.v, shape) for one in of])
        else:
            each = [one.expand(shape).to_event(len(shape)) if shape else one for one in of]
            sites = zip(at, each, strict=True)
            drawn = jnp.stack([numpyro.sample(f"{names[i]} ", prior) for i, prior in sites])
        found = found.at[at].set(drawn)
    return found


def _network(made):
    """Return the weights of a network that all groups share, if there is one: N(0, 1), times the
    standard deviation of their leaf, kernels over the root of their inputs.
    """
    if not (names := weights.leaves(made)):
        return {}
    priors = [f"sd_network[{name}]" for name in names if name != weights.NOISE]
    sd = _sampled(made, "sd_network", priors)
    if made.noisy:  # a site of its own, which has a start of its own
        sd = jnp.append(sd, _sampled(made, weights.SD_NOISE, [f"sd_network[{weights.NOISE}]"]))
    unit = dist.Normal(0, 1).expand([weights.layout(made).size]).to_event(1)
    found = {"network": numpyro.sample("weights", unit) * weights.sds(made, None, sd)}
    learnt = np.isin(names, weights.learnt(made))
    return found | ({"sd_network": sd[learnt]} if learnt.any() else {})


def _extra(made, data):
    """Return the parameters that a family has beside the mean's."""
    found = {}
    for name in families.FAMILIES[made.family].extra:
        if name == "cutpoint":
            base = dist.Normal(0, 2.5).expand([len(made.classes) - 1]).to_event(1)
            ordered = dist.transforms.OrderedTransform()
            found[name] = numpyro.sample("cut", dist.TransformedDistribution(base, ordered))
        elif name == "noise" and made.noise is not None:
            names = [f"noise[{column}]" for column in made.noise.column_names]
            found["of_noise"] = _sampled(made, "of_noise", names)
            found["noise"] = jnp.exp(data["noise"] @ found["of_noise"])
        else:
            found[name] = _sampled(made, f"the {name}", [name])[0]
    return found


def _lower(made, part):
    """Return the standard deviations of a network's weights [weight], or a matrix whose product
    with its transpose is the covariance of what differs by group [column and output, the same].
    """
    of = f"sd_{part.term.name}"
    if part.spec is None:
        names = [part.sd_of(name) for name in weights.leaves(made, part)]
        return weights.sds(made, part, numpyro.deterministic(of, _sampled(made, of, names)))
    names = [part.sd_of(name) for name in part.columns]
    sd = _sampled(made, of, names, (made.num_outputs,)).reshape(-1)
    correlation = f"correlation_{part.term.name}"
    if correlation not in made.priors:
        return jnp.diag(sd)
    return sd[:, None] * numpyro.sample(f"{correlation} ", made.priors[correlation])


def _effect(made, part, lower, mean):
    """Return the effects of a term, as ``output`` takes them."""
    site, size = f"{part.term.name} ", len(part.levels)
    if lower.ndim == 1 or part.drawn == "offset":
        unit = dist.Normal(0, 1).expand([size, len(lower)]).to_event(2)
        base = numpyro.sample(site, unit)
        if lower.ndim == 1:
            return base * lower
        return (base @ lower.T).reshape(size, -1, made.num_outputs)
    about = around(made, part, mean).reshape(-1)
    loc, scale = (jnp.repeat(jnp.asarray(a), made.num_outputs) for a in units(made, part))
    normal = dist.MultivariateNormal((about - loc) / scale, scale_tril=lower / scale[:, None])
    raw = loc + scale * numpyro.sample(site, normal.expand([size]).to_event(1))
    return (raw - about).reshape(size, -1, made.num_outputs)


def around(made: Model, part: Part, mean: Float[Array, "column output"]) -> Array:
    """Return what effects are drawn about, [column, output]: 0, or the common coefficients."""
    if part.drawn != "level":
        return jnp.zeros((len(part.columns), made.num_outputs))
    names = [*made.columns]
    found = jnp.stack(
        [
            mean[names.index(name)] if name in names else jnp.zeros(made.num_outputs)
            for name in part.columns
        ]
    )
    if "Intercept" in part.columns and "Intercept" in names:
        # of the columns whose slopes are not centred with the common ones
        off = np.array([made.center[names.index(n)] if n in names else 0.0 for n in part.columns])
        level = found[part.columns.index("Intercept")] - ((off - part.center) @ found)
        found = found.at[part.columns.index("Intercept")].set(level)
    return found


def units(made: Model, part: Part) -> tuple[Array, Array]:
    """Return about where, and how far apart, effects of a term lie, [column]."""
    here = np.array([name == "Intercept" for name in part.columns])
    priors = [made.priors[part.sd_of(name)] for name in part.columns]
    scale = [getattr(prior, "scale", 1.0) for prior in priors]
    return np.where(here & (part.drawn == "level"), made.spread[0], 0.0), jnp.array(scale)


def in_units(made: Model, values: dict, lowers: list[Any]) -> dict[str, Array]:
    """Return what is kept of a draw, in the table's units, where a line's level is that of columns
    that are 0.
    """
    mean, names = values["mean"], [*made.columns]
    found = {}
    if made.exact:
        found["exact"] = {"mean": mean, "lowers": lowers, "noise": values["noise"]}
    if "Intercept" in names:
        mean = mean.at[names.index("Intercept")].add(-made.center @ mean)
    if names:
        found["coefficient"] = mean if made.family == "categorical" else mean[:, 0]
    for i, (part, lower) in enumerate(zip(made.parts, lowers, strict=True)):
        name, move = part.term.name, to_zero(part)
        if part.spec is None:
            found[f"effect_{name}"] = values["effect"][i]
            continue
        covariance = np.kron(move, np.eye(made.num_outputs)) @ lower
        covariance = covariance @ covariance.T
        sd = jnp.sqrt(jnp.diag(covariance))
        shape = (-1, made.num_outputs) if made.family == "categorical" else (-1,)
        found[f"sd_{name}"] = sd.reshape(shape)
        if f"correlation_{name}" in made.priors:
            found[f"correlation_{name}"] = covariance / sd / sd[:, None]
        if "effect" in values:
            effect = jnp.einsum("ij,ljo->lio", move, values["effect"][i])
            found[f"effect_{name}"] = effect if made.family == "categorical" else effect[..., 0]
    extra = {*families.FAMILIES[made.family].extra} | {"network", "sd_network"}
    found |= {name: values[name] for name in extra & {*values}}
    if "of_noise" in values:
        found["noise"] = values["of_noise"]
    if "cutpoint" in values:
        found["cutpoint"] = values["cutpoint"] + made.center @ values["mean"][:, 0]
    return found


def to_zero(part: Part) -> np.ndarray:
    """Return the matrix that takes effects at the columns' means to those at 0."""
    move = np.eye(len(part.columns))
    if "Intercept" in part.columns:
        move[part.columns.index("Intercept")] -= part.center
    return move


def values_of(made: Model, draw: dict[str, Array], data: dict) -> dict:
    """Return what ``output`` and ``families.distribution`` take of one draw, in the table's units.

    Args:
        made: the model.
        draw: what ``in_units`` returned, by name.
        data: rows, as ``models.encode`` returns them.
    """
    extra = families.FAMILIES[made.family].extra
    values = {name: draw[name] for name in (*extra, "network") if name in draw}
    if made.noise is not None:
        values["noise"] = jnp.exp(data["noise"] @ draw["noise"])
    mean = draw.get("coefficient", jnp.zeros(0))  # a network need not have any
    values["mean"] = mean.reshape(len(made.columns), made.num_outputs)
    effects = [draw[f"effect_{part.term.name}"] for part in made.parts]
    values["effect"] = [
        effect if part.spec is None else effect.reshape(-1, len(part.columns), made.num_outputs)
        for effect, part in zip(effects, made.parts, strict=True)
    ]
    return values


def outcomes(made: Model, draw: dict[str, Array], data: dict) -> dist.Distribution:
    """Return the distribution of each row's outcome under one draw.

    Arguments are those of ``values_of``.
    """
    values = values_of(made, draw, data)
    return families.distribution(made.family, output(made, values, data), values, data)


def outputs(made: Model, draws: dict) -> np.ndarray:
    """Return what stands behind the link for some rows, by which a run is checked."""
    rows = models.some_rows(made.data, np.s_[:: -(-len(made.data["y"]) // SEEN)])

    def one(draw):
        return output(made, values_of(made, draw, rows), rows)

    return predict.by_chain(one, draws)
