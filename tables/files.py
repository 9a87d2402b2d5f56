"""A posterior as a file: ``files.save("posterior.nc", network, recipe, posterior)``,
``files.load("posterior.nc")``.
"""

from helpers import checks, networks
from helpers.diagnostics import arviz
from helpers.mcmc import Posterior

import json
import os
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from tables import multilevel
from tables.frames import Recipe


def save(path: Path | str, network: networks.MLP, recipe: Recipe, posterior: Posterior) -> None:
    """Write draws, and what predicting with them needs, as ArviZ's NetCDF, which
    ``arviz.from_netcdf`` reads, too.

    Args:
        path: of the file, which is written over if there is one.
        network, recipe: those that the draws were made with.
        posterior: from ``mcmc.sample``, leading axes [chain, draw].

    ValueError: an activation that is not one of ``flax.linen``, draws that are not of this network
    and recipe.
    """
    made = {name: getattr(network, name) for name in ("hidden", "use_bias", "num_outputs")}
    made["activation"] = network.activation.__name__
    if getattr(nn, made["activation"], None) is not network.activation:
        raise ValueError(
            f"activation: given {made['activation']}, expected a function of flax.linen"
        )
    multilevel.axes(network, recipe, posterior.draws)
    draws = dict(
        zip(_names(posterior.draws), map(np.asarray, jax.tree.leaves(posterior.draws)), strict=True)
    )
    about = {"about": json.dumps({"network": made, "recipe": recipe._asdict()})}
    stats = {
        "lp": np.asarray(posterior.stats.log_density),
        "diverging": np.asarray(posterior.stats.diverging),
    }
    path = Path(path)
    beside = path.with_name(f"{path.name}.{os.getpid()}")  # whole, or not there
    try:
        arviz.from_dict(draws, sample_stats=stats, attrs=about).to_netcdf(str(beside))
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def load(path: Path | str) -> tuple[networks.MLP, Recipe, dict]:
    """Return network, recipe and draws that ``save`` wrote; draws have the leading axes [chain,
    draw].

    ValueError: a file that is not there, or none that ``save`` wrote whole; it says what is wrong.
    """
    try:
        found = arviz.from_netcdf(str(path))
        about = json.loads(found.attrs["about"])
        made = about["network"]
        made |= {"hidden": tuple(made["hidden"]), "activation": getattr(nn, made["activation"])}
        network, recipe = networks.MLP(**made), Recipe(**about["recipe"])
        like = multilevel.shapes(network, recipe)
        leaves = [np.asarray(found.posterior[name].values) for name in _names(like)]
    except Exception as error:  # of the file system, HDF5, JSON or a recipe: the remedy is the same
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"path: given {path}, expected a file of files.save; {what}") from error
    draws = jax.tree.unflatten(jax.tree.structure(like), leaves)
    checks.finite(**{str(path): draws})
    multilevel.axes(network, recipe, draws)
    return network, recipe, jax.tree.map(jnp.asarray, draws)


def _names(tree):
    """The leaves' places, such as ``mean.Dense_0.kernel``, in their order."""
    return [
        jax.tree_util.keystr(at, simple=True, separator=".")
        for at, _ in jax.tree_util.tree_leaves_with_path(tree)
    ]
