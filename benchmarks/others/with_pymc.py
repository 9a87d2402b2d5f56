"""PyMC's own NUTS at its defaults: 1000 steps of tuning, four chains side by side, a process
each.
"""

import numpy as np
import pymc as pm

from benchmarks.others.posterior import NUM_TASKS, SHAPES
from benchmarks.others.session import CHAINS, Session

WARM_UP = 1000  # PyMC's default


def model(x, y):
    """The hierarchical network; all tasks in one product."""
    with pm.Model() as found:
        h = x
        for i, shape in enumerate(SHAPES):
            mean = pm.Normal(f"mean_{i}", 0.0, 1.0, shape=shape)
            sd = pm.HalfNormal(f"sd_{i}", 1.0)
            offset = pm.Normal(f"offset_{i}", 0.0, 1.0, shape=(NUM_TASKS, *shape))
            h = pm.math.matmul(h, mean + sd * offset)
            h = h if i == len(SHAPES) - 1 else pm.math.tanh(h)
        pm.Bernoulli("y", logit_p=h[..., 0], observed=y)
    return found


def point_of(draws):
    """Return one position as PyMC names its unconstrained values."""
    point = {name: draws[name] for name in draws if name != "log_sd"}
    return point | {f"sd_{i}_log__": draws["log_sd"][..., i] for i in range(3)}


def main():
    """Sample once; every draw passes by, and at a checkpoint all chains wait."""
    session = Session()
    session.begin()
    kept, diverging = ([[] for _ in range(CHAINS)] for _ in range(2))
    done, targets, first = 0, list(session.counts), []

    def passing(trace, draw):
        nonlocal done
        if not first:
            first.append(session.now())
            session.compiled_for(first[0])  # until the first step: compiling, starts, processes
        if draw.tuning:
            return
        kept[draw.chain].append({name: np.array(value) for name, value in draw.point.items()})
        diverging[draw.chain].append(bool(draw.stats[0]["diverging"]))
        fewest = min(map(len, kept))
        if fewest == 1 and not session.is_warm:
            session.warm()
        if not targets or done + fewest < targets[0]:
            return
        number = targets.pop(0) - done
        draws = {
            name: np.stack([np.stack([one[name] for one in chain[:number]]) for chain in kept])
            for name in kept[0][0]
        }
        draws["log_sd"] = np.stack([draws.pop(f"sd_{i}_log__") for i in range(3)], axis=-1)
        go_on = session.judged(draws, [chain[:number] for chain in diverging])
        for lists in (kept, diverging):
            for chain in lists:
                del chain[:number]
        done += number
        if not go_on or not targets:
            raise KeyboardInterrupt  # PyMC's way to be stopped by a callback

    with model(session.x, session.y):
        pm.sample(
            draws=session.counts[-1] + 1,
            tune=session.steps(WARM_UP),
            chains=CHAINS,
            cores=CHAINS,
            random_seed=session.seed,
            nuts_sampler="pymc",
            progressbar=False,
            compute_convergence_checks=False,
            return_inferencedata=False,
            callback=passing,
        )


if __name__ == "__main__":
    main()
