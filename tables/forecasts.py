"""Rows under each draw, of a fit by ``predict(key, fit, frame)`` or of the priors."""

from helpers import checks
from helpers.diagnostics import arviz
from helpers.predict import by_chain

import reprlib
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

from tables import families, formulas, models, weights, written
from tables.comparisons import MOST_K
from tables.fits import Fitted
from tables.models import Model

CANDIDATES = 200  # effects of a new group that its rows choose among, in each draw


class Forecast(NamedTuple):
    """Rows under each draw."""

    mean: Float[np.ndarray, "chain draw row *class"]  # of the outcome; probabilities of classes
    outcome: Float[np.ndarray, "chain draw row"]  # drawn; a class by its index
    pareto_k: float | None = None  # of the weights by rows that were given; above 0.7 fit again
    # of the outcomes that the rows have, in nats; None where they have none, or gaps
    log_density: Float[np.ndarray, "chain draw row"] | None = None


def predict(
    key: Key[Array, ""],
    fit: Fitted,
    frame: pd.DataFrame,
    *,
    given: pd.DataFrame | None = None,
    groups: bool = True,
) -> Forecast:
    """Return the outcome of rows under each draw, with the noise of a single outcome.

    A group that training rows did not have is named, and gets effects of its own from their
    distribution in every draw. Rows of it whose outcomes are known already, ``given``, choose among
    such effects and weigh the draws, so that nothing is fitted again; the Pareto k says whether
    that may be trusted.

    Args:
        key: for new groups and outcomes.
        fit: of ``fits.fit``.
        frame: the rows; an outcome is not needed, and changes no forecast: where all rows have
            one, it is read as those of training rows, and its log density is returned.
        given: rows with outcomes, which were not among the training rows: they would count twice.
        groups: False for an average group, whose effects are 0; no column of groups is needed.

    ValueError: as ``models.encode``; new groups of several terms among rows that are given; no
        groups, of networks that are separate.
    """
    num_given, y = 0, np.zeros(0)
    factors = fit.model.factors
    if not groups:
        if any(part.term.inner == "separate" for part in fit.model.parts):
            raise ValueError(
                "groups: given False, expected a group: separate networks have no mean"
            )
        any_of = {name: fit.model.rows[name].iloc[0] for name in factors if name not in frame}
        frame = frame.assign(**any_of)
    if given is not None:
        if fit.model.outcome not in given:
            raise ValueError(f"given: expected rows with the outcome {fit.model.outcome!r}")
        num_given, y = len(given), models.encode(fit.model, given)["y"]
        given, frame = (
            one.assign(**formulas.clean(one, factors).map(formulas.as_text).set_index(one.index))
            for one in (given, frame)
        )
        frame = pd.concat([given, frame], ignore_index=True)
    told = fit.model.outcome in frame and frame[fit.model.outcome].notna().all()
    frame = frame if told else frame.drop(columns=fit.model.outcome, errors="ignore")
    with jax.enable_x64(True):
        data = models.encode(fit.model, frame)
        if groups:
            _tell_new(fit.model, frame, data)
        rows = models.some_rows(data, np.s_[num_given:])
        seen = models.some_rows(data, np.s_[:num_given]) | {"y": y}
        draw_one = partial(_forecast, fit.model, rows, seen, groups)
        keys = jax.random.split(key, fit.data.sample_stats["lp"].shape)
        mean, outcome, density, weight = by_chain(draw_one, keys, fit.draws)
    if given is None:
        return Forecast(mean, outcome, None, density)
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

    density = again(density) if told else None
    return Forecast(again(mean), again(outcome), float(pareto_k), density)


def _tell_new(made, frame, data):
    """Print which groups are new, since a misspelt one would be."""
    for part, at in zip(made.parts, data["group"], strict=True):
        if at.max() >= len(part.levels):
            rows = formulas.clean(frame, part.term.factors)
            _, names = formulas.groups(part.term.factors, rows, part.levels)
            new = reprlib.repr(names[len(part.levels) :])
            print(f"{part.term.name}: {new} new, with effects drawn for them")


def _forecast(made, rows, seen, groups, key, draw):
    """Return mean, outcome and log density of rows under one draw, and the log weight by rows that
    were seen.
    """
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
    density = families.log_likelihood(found, rows["y"], rows) if "y" in rows else None
    return families.mean(found), found.sample(key_outcome), density, weight


def _with_new(made, new, key, draw):
    """Return effects of each term, those of new groups drawn from their distribution."""
    found = {}
    for i, part in enumerate(made.parts):
        name, more = part.term.name, max(0, new[i])
        effect, sd = draw[f"effect_{name}"], draw[f"sd_{name}"].reshape(-1)
        sd = weights.sds(made, part, sd) if part.spec is None else sd
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
        rows = models.some_rows(model.data)

        def one(key):
            key_prior, key_outcome = jax.random.split(key)
            seeded = handlers.seed(written.written(plain), key_prior)
            sites = handlers.trace(seeded).get_trace(rows)
            draw = {n: s["value"] for n, s in sites.items() if s["type"] == "deterministic"}
            found = written.outcomes(plain, draw, rows)
            return families.mean(found), found.sample(key_outcome)

        mean, outcome = by_chain(one, jax.random.split(key, (1, num_draws)))
    return Forecast(mean, outcome)
