"""What a result keeps of a run of ``mcmc.sample``, and the diagnostics of its row."""

from helpers import diagnostics, mcmc

from typing import Any

import numpy as np

BY_KIND = ("rhat", "rhat_bound", "ess_bulk", "ess_tail", "ess", "ess_alone", "ess_worst", "drift")
OF_RUN = ("divergences", "diverging", "bfmi", "integration_steps", "at_limit", "begun_again")


def kept_run(posterior: mcmc.Posterior) -> dict:
    """Return what a unit keeps of a run beside draws: statistics, and what warm-up learnt."""
    return {"stats": posterior.stats._asdict(), "warmup": posterior.warmup._asdict()}


def run_from(drawn: dict, draws: Any = None) -> mcmc.Posterior:
    """Return the run of which ``kept_run`` was kept, with those draws: what ``diagnosis`` takes."""
    return mcmc.Posterior(draws, mcmc.Stats(**drawn["stats"]), mcmc.Warmup(**drawn["warmup"]))


def diagnosis(posterior: mcmc.Posterior, predictions: Any, **others: Any) -> dict:
    """Return ``diagnostics.check`` of a run for a row: by kind of quantity, then of the run."""
    check = diagnostics.check(posterior, predictions, **others)
    chains, draws = posterior.stats.log_density.shape[-2:]
    return row_of(check) | {"chains": chains, "draws": draws}


def row_of(check: diagnostics.Check) -> dict:
    """Return a check for a row: by kind of quantity, then of the run, and the verdict."""
    by_kind = {
        name: dict(zip(check.kinds, getattr(check, name).tolist(), strict=True)) for name in BY_KIND
    }
    of_run = {name: getattr(check, name) for name in OF_RUN}
    return by_kind | of_run | {"mixed": check.ok}


def check_of(row: dict) -> diagnostics.Check:
    """Return the check that ``row_of`` was told; what an older row has not kept is not asked."""
    kinds = tuple(row["rhat"])
    unknown = {"ess_bulk": row["ess_alone"], "ess_tail": row["ess_alone"], "ess": row["ess_alone"]}
    unknown |= {"ess_worst": row["ess_alone"], "drift": dict.fromkeys(kinds, 0.0)}
    known = unknown | row
    by_kind = {name: np.array([known[name][kind] for kind in kinds]) for name in BY_KIND}
    of_run = {name: known.get(name, 0.0) for name in OF_RUN}
    return diagnostics.Check(kinds, **by_kind, **of_run)
