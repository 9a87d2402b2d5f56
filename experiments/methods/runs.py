"""What a result keeps of a run of ``mcmc.sample``, and the diagnostics of its row."""

from helpers import diagnostics, mcmc

from typing import Any


def kept_run(posterior: mcmc.Posterior) -> dict:
    """Return what a unit keeps of a run beside draws: statistics, and what warm-up learnt."""
    return {"stats": posterior.stats._asdict(), "warmup": posterior.warmup._asdict()}


def run_from(drawn: dict, draws: Any = None) -> mcmc.Posterior:
    """Return the run of which ``kept_run`` was kept, with those draws: what ``diagnosis`` takes."""
    return mcmc.Posterior(draws, mcmc.Stats(**drawn["stats"]), mcmc.Warmup(**drawn["warmup"]))


def diagnosis(posterior: mcmc.Posterior, predictions: Any, **others: Any) -> dict:
    """Return ``diagnostics.check`` of a run for a row: by kind of quantity, then of the run."""
    check = diagnostics.check(posterior, predictions, **others)
    by_kind = {
        name: dict(zip(check.kinds, getattr(check, name).tolist(), strict=True))
        for name in ("rhat", "rhat_bound", "ess")
    }
    agree = (check.rhat <= check.rhat_bound).all()
    mixed = bool(agree and check.ess.min() >= diagnostics.LEAST_ESS)
    names = "divergences", "bfmi", "integration_steps", "at_limit"
    kept = {name: getattr(check, name) for name in names}
    return by_kind | kept | {"chains": posterior.stats.log_density.shape[-2], "mixed": mixed}
