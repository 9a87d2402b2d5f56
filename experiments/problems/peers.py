"""Posteriors that others have answered, or that have exact answers, to judge a sampler by.

    peer = peers.load("garch-garch11")
    peers.names()

Those of posteriordb have answers of 10 000 nearly independent draws (Magnusson et al. 2025; data
and answers, under the BSD-3-Clause licence, are in the folder ``posteriordb``). The others strain a
sampler, and their answers are exact.
"""

import json
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from experiments.problems import posteriordb_models as models
from experiments.problems import stressed
from experiments.problems.stressed import Answers

FOLDER = Path(__file__).with_name("posteriordb")
# What may be asked of a verdict on a run of a good sampler.
EASY = "accepted"  # it has to be right, and accepted
HARD = "right or refused"  # it may be wrong, and then has to be refused
BEYOND = "beyond a check"  # it may be wrong where no check of its draws can see it

# posterior of posteriordb, model, what is asked
ANSWERED = {
    "kidiq-kidscore_interaction": (models.kidscore_interaction, EASY),
    "kidiq-kidscore_momiq": (models.kidscore_momiq, EASY),
    "earnings-earn_height": (models.earn_height, EASY),
    "mesquite-mesquite": (models.mesquite, EASY),
    "sblri-blr": (models.blr, EASY),
    "arK-arK": (models.ar, EASY),
    "garch-garch11": (models.garch, EASY),
    "low_dim_gauss_mix-low_dim_gauss_mix": (models.gauss_mix, EASY),
    "gp_pois_regr-gp_regr": (models.gp_regression, EASY),
    "eight_schools-eight_schools_noncentered": (models.schools, EASY),
    "bball_drive_event_0-hmm_drive_0": (models.hmm_drive, HARD),
}
# the same posterior in other coordinates: whose answers, model, what is asked
IN_OTHER_COORDINATES = {
    "eight_schools-eight_schools_centered": (
        "eight_schools-eight_schools_noncentered",
        partial(models.schools, centred=True),
        HARD,
    )
}
STRESSED = {
    "years": (stressed.years, EASY),
    "alike": (stressed.alike, HARD),
    "scales": (stressed.scales, HARD),
    "funnel": (stressed.funnel, HARD),
    "spike": (stressed.spike, BEYOND),
    "far modes": (stressed.far_modes, BEYOND),
}


class Peer(NamedTuple):
    """A posterior and what is known of its quantities."""

    name: str
    log_density: Callable[[Any], Float[Array, ""]]  # of one position, nats, up to a constant
    position: Any  # the shapes of one position: float32, unconstrained
    quantities: Callable[[Any], Float[Array, " quantity"]]  # of one position
    labels: tuple[str, ...]  # their names
    answers: Answers
    num_draws: float  # independent draws that the answers are of; infinite where they are exact
    asked: str  # of a verdict: ``EASY``, ``HARD`` or ``BEYOND``


def names() -> tuple[str, ...]:
    """Return the names of all posteriors."""
    return (*ANSWERED, *IN_OTHER_COORDINATES, *STRESSED)


@cache
def load(name: str) -> Peer:
    """Return the posterior of a name; a second call returns the same, which compiles nothing again.

    ValueError: there is none of that name.
    """
    if name in STRESSED:
        made, asked = STRESSED[name]
        density, answers = made()
        labels = tuple(f"{i + 1}" for i in range(len(answers.mean)))
        return Peer(name, *density, labels, answers, math.inf, asked)
    if name not in ANSWERED and name not in IN_OTHER_COORDINATES:
        raise ValueError(f"name: given {name!r}, expected one of {names()}")
    file, model, asked = IN_OTHER_COORDINATES.get(name) or (name, *ANSWERED[name])
    stored = stored_posterior(file)
    found = stored["reference"]
    columns = zip(*([row[key] for key in Answers._fields] for row in found.values()), strict=True)
    answers = Answers(*(np.array(column, np.float64) for column in columns))
    (num_draws,) = {row["draws"] for row in found.values()}
    return Peer(name, *model(stored["data"]), tuple(found), answers, num_draws, asked)


def stored_posterior(name: str) -> dict:
    """Return the data of a posterior and the answers of posteriordb, as they are stored."""
    return json.loads((FOLDER / f"{name}.json").read_text())


@partial(jax.jit, static_argnums=0)
def of_draws(quantities: Callable, draws: Any) -> Float[Array, "chain draw quantity"]:
    """Return the quantities of draws, a pytree with leading axes [chain, draw]."""
    return jax.lax.map(lambda chain: jax.lax.map(quantities, chain), draws)
