"""Judge the draws of all samplers by one program: R-hat, effective sample sizes and modes, at each
checkpoint.

R-hat and effective sizes are ArviZ's, through the book's ``diagnostics``; a mode is the layer whose
standard deviation is the largest, as in the book. Beyond 2000 draws a chain every second one is
left out, and so on.
"""

from helpers import diagnostics

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache

import numpy as np

from benchmarks.others import posterior
from benchmarks.others.table import TARGET

FIELDS = ("rhat", "ess_bulk", "ess_tail", "ess_alone")
MOST = 2000  # draws of each chain that are judged
LAST = 50  # draws of each chain by which its mode and its log density are told
# the mode with nearly all of the mass: the output layer's standard deviation is the largest
MASS = 2


class Judge:
    """What is kept of a run's draws, and the verdict at each checkpoint."""

    def __init__(self, tasks):
        """Take the training and test points."""
        self.tasks, self.verdicts = tasks, []
        self.p, self.log_sd, self.stretches, self.diverging = [], [], [], np.zeros(0, int)

    def hear(self, told, draws):
        """Take the draws of a checkpoint, and add the verdict on all so far."""
        self.p.append(
            posterior.probabilities(draws, np.asarray(self.tasks.x_test)).astype(np.float32)
        )
        self.log_sd.append(draws["log_sd"])
        p, log_sd = (np.concatenate(parts, axis=1) for parts in (self.p, self.log_sd))
        self.p, self.log_sd = [p], [log_sd]
        begin, start = (
            self.stretches[-1][1::2] if self.stretches else (0, told["compiling"] + told["warm_up"])
        )
        self.stretches.append((begin, p.shape[1], start, told["seconds"]))
        diverging = np.array(told["diverging"])
        self.diverging = self.diverging + diverging if self.diverging.size else diverging
        last = {name: values[:, -LAST:] for name, values in draws.items()}
        of_last = posterior.log_density(
            last, np.asarray(self.tasks.x_train), np.asarray(self.tasks.y_train)
        )
        inside = log_sd.argmax(axis=-1) == MASS
        kept, of_all = inside.all(axis=1), judged(p, log_sd)
        of_kept = (
            of_all if kept.all() else judged(p[kept], log_sd[kept]) if kept.sum() >= 2 else None
        )
        self.verdicts.append(
            {
                "draws": p.shape[1],
                **{name: told[name] for name in ("seconds", "compiling", "warm_up")},
                "diverging": self.diverging.tolist(),
                "log_density": of_last.mean(axis=1).tolist(),
                "mode": np.median(log_sd[:, -LAST:], axis=1).argmax(axis=-1).tolist(),
                "found_after": [self.found_after(chain) for chain in inside],
                "kept_chains": kept.tolist(),
                "all_chains": of_all,
                "of_kept": of_kept,
            }
        )

    def found_after(self, inside):
        """Seconds after which a chain stayed in the mode with the mass; None if it does not end
        there.

        The end of warm-up, if the chain is inside from then on: when it came there is not seen.
        """
        if not inside[-1]:
            return None
        outside = np.flatnonzero(~inside)
        first = int(outside[-1]) + 1 if outside.size else 0
        begin, end, start, stop = next(part for part in self.stretches if first < part[1])
        return start + (stop - start) * (first - begin) / (end - begin)


def judged(p, log_sd):
    """Effective sizes and R-hat of test probabilities [chain, draw, point] and log sd [chain, draw,
    layer].
    """
    thin = -(-p.shape[1] // MOST)
    values = np.concatenate([p, log_sd], axis=-1)[:, thin - 1 :: thin]
    parts = list(_pool().map(diagnostics.summarize, np.array_split(values, 2, axis=-1)))
    rhat, bulk, tail, alone = (
        np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS
    )
    bound = diagnostics.rhat_bound(alone, rhat.size, values.shape[1], len(values))
    points = p.shape[-1]
    ess = float(np.quantile(np.minimum(bulk, tail)[:points], 0.05))
    within = bool((rhat <= bound).all())
    return {
        "ess": ess,
        "median_ess": float(np.median(np.minimum(bulk, tail)[:points])),
        "rhat": float(np.quantile(rhat[:points], 0.99)),
        "rhat_log_sd": float(rhat[points:].max()),
        "rhat_largest": float(rhat.max()),
        "rhat_within_bound": within,
        "reached": within and ess >= TARGET,
    }


@lru_cache
def _pool():
    """Two processes, which work while the sampler waits; not forked, since JAX has threads."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
