"""The book's sampler, NumPyro's and BlackJAX's on posteriors whose answers are known.

Each at its defaults, from the same starts, on the same density and cores. A row a run: how far it
lies from the answers, what it cost, and whether the book's check accepts it. Seconds belong to the
machine that ran this, and are of all chains one after the other, compiling left out.
"""

from helpers import common, mcmc

import numpy as np

from experiments.methods import peer_samplers, peer_scores
from experiments.problems import peers

SETTINGS = {
    "seeds": [0, 1, 2, 3, 4],
    # Seeds at which a check of R-hat and effective sizes alone was fooled: five and twelve draws of
    # one chain lie 60 nats below the others, and move one mean by 0.4 and 0.7 of its sd.
    "also": {"bball_drive_event_0-hmm_drive_0": [11, 30]},
    "num_chains": 4,
}


def units():
    """A posterior, a seed and a sampler each."""
    return {
        f"{name}, seed {seed}, {sampler}": {"name": name, "seed": seed, "sampler": sampler}
        for name in peers.names()
        for seed in SETTINGS["seeds"] + SETTINGS["also"].get(name, [])
        for sampler in peer_samplers.SAMPLERS
    }


SMALL = [{"name": "sblri-blr", "seed": 0, "sampler": sampler} for sampler in peer_samplers.SAMPLERS]


def unit(name, seed, sampler):
    """Draw, and keep the quantities whose answers are known; or what stopped the sampler."""
    peer = peers.load(name)
    starts = mcmc.normal_starts(
        common.key(seed, "starts"), peer.position, (SETTINGS["num_chains"],)
    )
    draw = peer_samplers.SAMPLERS[sampler]
    try:
        run = draw(common.key(seed, "chains"), peer.log_density, starts)
    except (FloatingPointError, ValueError) as stopped:
        return {"stopped": np.array(str(stopped))}
    return {
        "values": np.asarray(peers.of_draws(peer.quantities, run.posterior.draws), np.float64),
        "stats": run.posterior.stats._asdict(),
        "warmup_gradients": np.array(run.warmup_gradients),
        "seconds": np.array(run.seconds),
    }


def score(drawn, name, seed, sampler):
    """The run beside the answers, and the verdict on it."""
    peer = peers.load(name)
    of = {"posterior": name, "seed": seed, "sampler": sampler, "asked": peer.asked}
    if "stopped" in drawn:
        said = {"stopped": str(drawn["stopped"]), "accepted": False}
        return of | said | {"fault": peer_scores.fault(False, None, peer.asked)}
    posterior = mcmc.Posterior(None, mcmc.Stats(**drawn["stats"]))
    found = peer_scores.score(posterior, drawn["values"], peer)
    costs = {key: float(drawn[key]) for key in ("warmup_gradients", "seconds")}
    return of | found._asdict() | {"distances": found.distances._asdict()} | costs
