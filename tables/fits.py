"""A model of a table, sampled: ``fit(key, model)``, which says whether it can be used; what it will
cost; and a fit from a file.
"""

from helpers import checks, diagnostics, mcmc, numpyro_models, predict
from helpers.common import take
from helpers.diagnostics import Check, arviz
from helpers.hmc import Stats
from helpers.mcmc import Posterior

import time
import warnings
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from arviz import InferenceData
from jaxtyping import Array, Key

from tables import exact, families, weights, written
from tables.models import Model

LONGER = 4  # times the draws that are asked for, at most
PILOT = 100  # draws of each chain, by which it is decided how effects are drawn
PINNED = 0.35  # share of its variance that a group's level keeps when its rows are seen: at most
ROWS = 50  # of a group on average, from which it is first taken to be pinned
STATS = ("lp", "diverging", "acceptance_rate", "energy", "n_steps")  # ArviZ's names of ``Stats``
# of a draw, in tables tried so far: few where effects are integrated out
STEPS, MANY_STEPS = (3, 15), (4, 250)


class Fitted(NamedTuple):
    """Draws of a model's posterior."""

    model: Model
    data: InferenceData  # groups posterior, sample_stats, observed_data; ``to_netcdf`` keeps it
    check: Check  # whether it can be used

    @property
    def draws(self) -> dict[str, np.ndarray]:
        """What was drawn, in the table's units, by name: leading axes [chain, draw]."""
        return {name: values.values for name, values in self.data.posterior.items()}

    def __repr__(self) -> str:
        return f"Fitted({self.model!r}, {'can' if self.check.ok else 'NOT to'} be used)"


def fit(
    key: Key[Array, ""],
    model: Model,
    *,
    num_warmup: int = 300,
    num_samples: int = 1000,
    num_chains: int = 4,
    target_acceptance: float = 0.9,
    max_tree_depth: int = 10,
    progress: bool | None = None,
) -> Fitted:
    """Draw from a model's posterior in float64; print the verdict, and warn where it is not good.

    Effects of groups are integrated out where that is exact and fast, and drawn after. Others are
    drawn non-centred, and after a hundred draws once more about the common coefficients, where the
    rows of a group pin it. Chains draw on where nothing is wrong but that effective draws are too
    few: four times as long at most.

    Args:
        key: for everything that is random.
        model: of ``models.model``.
        num_warmup, num_samples, num_chains, target_acceptance, max_tree_depth, progress: as of
            ``mcmc.sample``.

    ValueError: fewer than two chains or a hundred draws.
    FloatingPointError: as ``mcmc.sample``.
    """
    checks.count(least=2, num_chains=num_chains)
    checks.count(least=PILOT, num_samples=num_samples)
    of_run = dict(
        num_warmup=num_warmup, target_acceptance=target_acceptance, max_tree_depth=max_tree_depth
    )
    lengths = of_run | {"progress": progress}
    key_pilot, key_run, key_effects = jax.random.split(key, 3)
    with jax.enable_x64(True):
        model = _guess(model)
        undecided = not model.exact and any(part.spec is not None for part in model.parts)
        first = PILOT if undecided else num_samples
        found, posterior = _sampled(key_pilot, model, num_chains, first, lengths)
        more = num_samples - first
        drawn = _choice(model, kept(model, found, posterior)) if undecided else None
        if undecided and drawn != [part.drawn for part in model.parts]:
            model, more = _with(model, drawn), 0
            found, posterior = _sampled(key_run, model, num_chains, num_samples, lengths)
        for _ in range(LONGER):
            if more:
                posterior = mcmc.extend(
                    posterior, found.log_density, more, data=model.data, progress=progress
                )
            draws = kept(model, found, posterior)
            if model.exact:
                draws |= effects(key_effects, model, draws.pop("exact"))
            check = _checked(model, posterior, draws)
            if check.ok or not all(one.endswith("mcmc.extend") for one in check.reasons):
                break
            more = num_samples
    verdict = diagnostics.describe(check).replace("draw on: mcmc.extend", "raise num_samples")
    print(verdict)
    if not check.ok:
        warnings.warn(f"not{verdict[verdict.index('NOT') + 3 :]}", stacklevel=2)
    return Fitted(model, _inference_data(model, draws, posterior, of_run), check)


def _guess(model):
    """Return the model with a single factor of many rows a group drawn about the common level."""
    if model.exact or len(model.parts) != 1 or model.parts[0].spec is None:
        return model
    rows = len(model.data["y"]) / len(model.parts[0].levels)
    return _with(model, ["level" if rows >= ROWS else "offset"])


def _with(model, drawn):
    parts = [part._replace(drawn=how) for part, how in zip(model.parts, drawn, strict=True)]
    return model._replace(parts=tuple(parts))


def _sampled(key, model, num_chains, num_samples, lengths):
    """Return the NumPyro model as a density, and its posterior."""
    key_starts, key_chains = jax.random.split(key)
    found = numpyro_models.of(written.written(model), model.data)
    return found, mcmc.sample(
        key_chains,
        found.log_density,
        weights.starts(key_starts, found.shapes, (num_chains,)),
        data=model.data,
        num_samples=num_samples,
        **lengths,
    )


def kept(model: Model, found: numpyro_models.Found, posterior: Posterior) -> dict:
    """Return what is kept of draws, in the table's units, by name: leading axes [chain, draw]."""
    latent = {*found.shapes}
    return numpyro_models.constrained(
        found, posterior.draws, model.data, lambda name: name not in latent and name != "outcome"
    )


def _choice(model, draws):
    """Return how each term's effects are drawn, by what a pilot says of them."""
    found, about = ["offset"] * len(model.parts), {}
    mean = draws.get("coefficient", np.zeros((1, 1, 0))).copy()
    if "Intercept" in model.columns:  # the one that effects would be drawn about
        moved = np.einsum("cdk...,k->cd...", mean, model.center)
        mean[:, :, model.columns.index("Intercept")] += moved
    for i, part in enumerate(model.parts):
        if part.spec is None:
            continue
        effect, sd = draws[f"effect_{part.term.name}"], draws[f"sd_{part.term.name}"]
        if _share_kept(effect, sd) < PINNED:
            found[i] = "effect"
        at = [model.columns.index(name) for name in part.columns if name in model.columns]
        if len(at) == len(part.columns):
            about[i] = _share_kept(effect + mean[:, :, None, at], sd)
    taken = set()  # of factors that cross, one takes a common coefficient
    for i in sorted(about, key=about.get):
        if about[i] < PINNED and not taken & {*model.parts[i].columns}:
            found[i] = "level"
            taken |= {*model.parts[i].columns}
    return found


def _share_kept(effect, sd):
    """Return the share of its variance that a middle group keeps, of the column that keeps most,
    where the standard deviation is small: there, if anywhere, effects drawn as such get stuck.
    """
    within = np.median(effect.var(axis=1).mean(axis=0), axis=0)  # chains need not agree yet
    return float(np.max(within / np.quantile(sd, 0.1, axis=(0, 1)) ** 2))


def effects(key: Key[Array, ""], model: Model, inner: dict) -> dict:
    """Draw the effects that were integrated out, in the table's units, by name.

    Args:
        key: for the draws.
        model: the model.
        inner: what ``kept`` returned of them, leading axes [chain, draw].
    """
    sums = model.data["exact"]

    def one(key, inner):
        effects = exact.draw(key, model, sums, inner["mean"], inner["noise"], inner["lowers"])
        return {
            f"effect_{part.term.name}": effect @ written.to_zero(part).T
            for part, effect in zip(model.parts, effects, strict=True)
        }

    keys = jax.random.split(key, inner["noise"].shape)
    return predict.by_chain(one, keys, inner)


def _checked(model, posterior, draws):
    """Return the verdict: of the output for some rows, and of every parameter that is named."""
    named = {
        name: draw[..., moved]
        for name, draw in draws.items()
        if not name.startswith(("effect", "network", "correlation"))
        and (moved := ~weights.is_fixed(draw)).any()
    }
    others = {"parameters": named} if named else {}
    return diagnostics.check(posterior, written.outputs(model, draws), **others)


def _inference_data(model, draws, posterior, of_run):
    """Return draws as ArviZ has them, with names of columns and groups."""
    dims, coords = {"coefficient": ["column"]}, {"column": list(model.columns)}
    for part in model.parts:
        name = part.term.name
        coords[name] = part.levels
        of = f"{name}_column"
        coords[of] = list(part.columns) or weights.leaves(model, part)
        dims |= {f"effect_{name}": [name, of][: 1 + bool(part.columns)], f"sd_{name}": [of]}
        if model.num_outputs == 1:
            coords[f"{of}_too"] = list(part.columns)
            dims[f"correlation_{name}"] = [of, f"{of}_too"]
    if weights.learnt(model):
        dims["sd_network"], coords["leaf"] = ["leaf"], weights.learnt(model)
    if model.noise is not None:
        dims["noise"], coords["noise_column"] = ["noise_column"], list(model.noise.column_names)
    if model.family == "categorical":
        coords["class"] = model.classes[1:]
        own = [part.term.name for part in model.parts if part.spec is not None]
        of_class = ["coefficient", *(f"{kind}_{name}" for name in own for kind in ("sd", "effect"))]
        dims |= {name: [*dims.get(name, []), "class"] for name in of_class}
    stats = dict(zip(STATS, map(np.asarray, posterior.stats), strict=True))
    return arviz.from_dict(
        draws,
        sample_stats=stats,
        observed_data={model.outcome: model.data["y"]},
        coords=coords,
        dims=dims,
        attrs=_said(model) | of_run,
    )


def _said(model):
    """Return what a file says of its model."""
    priors = {name: families.text(prior) for name, prior in model.priors.items()}
    said = {"formula": model.formula, "family": model.family, "priors": str(priors)}
    return said | {"columns": str([*model.common.column_names])}  # a dot does not say which


def load(path: Path | str, model: Model) -> Fitted:
    """Return a fit that ``fit.data.to_netcdf`` kept, of a model made again of the same rows.

    ValueError: no such file, one of another model.
    """
    try:
        data = arviz.from_netcdf(str(path))
        now = _said(model)  # earlier files do not name columns
        said = {name: {"columns": now["columns"], **data.attrs}[name] for name in now}
        y = data.observed_data[model.outcome].values
        stats = [data.sample_stats[name].values for name in STATS]
    except Exception as error:  # of the file system, HDF5 or xarray: the remedy is the same
        raise ValueError(
            f"path: given {path}, expected a fit of {model.formula}; {error}"
        ) from error
    if not np.array_equal(y, model.data["y"]):
        raise ValueError(f"path: given {len(y)} other rows, expected those of the model")
    if odd := [name for name, one in now.items() if one != said[name]]:
        raise ValueError(f"path: given {odd[0]} {said[odd[0]]}, expected {now[odd[0]]}")
    found = Fitted(model, data, None)
    with jax.enable_x64(True):
        check = _checked(model, Posterior(None, Stats(*stats)), found.draws)
    return found._replace(check=check)


def cost(model: Model, num_draws: int = 1400, num_chains: int = 4) -> dict[str, tuple]:
    """Return a range of "seconds" and of "megabytes" that ``fit`` will take here, from the time of
    one gradient; compilation, some five seconds, is not counted.

    Args:
        model: of ``models.model``.
        num_draws, num_chains: how many draws, warm-up and pilot included, of how many chains.

    ValueError: no draws, no chains.
    """
    checks.count(num_draws=num_draws, num_chains=num_chains)
    with jax.enable_x64(True):
        found = numpyro_models.of(written.written(model), model.data)
        one = take(mcmc.normal_starts(jax.random.key(0), found.shapes, (1,), 0.3), 0)
        gradient, data = jax.jit(jax.grad(found.log_density)), jax.device_put(model.data)
        times = []
        for _ in range(6):  # the first compiles
            begun = time.perf_counter()
            jax.block_until_ready(gradient(one, data))
            times.append(time.perf_counter() - begun)
    each = min(times) * num_draws * -(-num_chains // mcmc.cores())
    size = 8e-6 * num_chains * num_draws * sum(leaf.size for leaf in one.values())
    seconds = tuple(each * steps for steps in (STEPS if model.exact else MANY_STEPS))
    return {"seconds": seconds, "megabytes": (size, 4 * size)}
