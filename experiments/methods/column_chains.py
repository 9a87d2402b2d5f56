"""Chains of a network of columns on a published split, and their row of a stored result."""

from helpers import common, diagnostics, mcmc, summaries

from functools import cache, partial

import jax
import numpy as np

from experiments.methods import column_networks, column_scores, runs
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

SEED = 3301
ARMS = {
    "learnt scales": {"noise": "number"},
    "noise by a second output": {"noise": "output"},
    "scales of 1": {"noise": "number", "scales": 1.0},
}
CHAINS = {"learnt scales": 16, "noise by a second output": 4, "scales of 1": 4}  # by arm
# 60 000 gradients a chain and not many more, 20 000 of them at most in warm-up's trees
LENGTHS = {"num_warmup": 200, "num_samples": 300, "max_tree_depth": 7}
PARTS = (0.25, 0.5, 1.0)  # of the draws, where length is weighed against chains


@cache
def model(table, noise, scales=None, hidden=(50,)):
    """Return an arm's model: the same functions for all splits, so that they compile once."""
    columns = usual_tables.read(table).shape[1] - 1
    fixed = None if scales is None else (scales,) * (len(hidden) + 1)
    return column_networks.model(columns, tuple(hidden), noise, fixed)


def starts(key, shapes, num_chains):
    """Draw dispersed starts; noise that depends on x starts near noise that does not."""
    found = mcmc.normal_starts(key, shapes, (num_chains,))
    if "log_change" in found:
        found["log_change"] = found["log_change"] + np.float32(
            np.log(column_networks.START_OF_CHANGE)
        )
    return found


def settings(table):
    """Return what a table's result is told to be."""
    return {"seed": SEED, "table": table, "chains": CHAINS, **LENGTHS, "parts": list(PARTS)}


def units(table):
    """Return every arm on every split."""
    return {
        f"{arm}; split {split}": {"table": table, "arm": arm, "split": split, "num_chains": count}
        for arm, count in CHAINS.items()
        for split in range(usual_tables.NUM_SPLITS)
    }


def unit(table: str, arm: str, split: int, num_chains: int) -> dict:
    """Sample an arm on a split; keep what it says of the rows that test, and how chains fared."""
    made, rows = model(table, **ARMS[arm]), usual_tables.split(table, split)
    key = partial(common.key, SEED)
    posterior = mcmc.sample(
        key("chains", table, arm, split),
        made.log_density,
        starts(key("start", table, arm, split), made.shapes, num_chains),
        data=column_networks.observed(rows.x_train, rows.y_train),
        **LENGTHS,
    )
    mean, log_noise = said(made, posterior.draws, np.float32(rows.x_test))
    base = np.asarray(posterior.draws["log_noise"])
    kept = {"mean": mean, "base": base, **runs.kept_run(posterior)}
    if "log_scales" in made.shapes:
        kept["log_scales"] = posterior.draws["log_scales"]
    return kept | ({"log_noise": log_noise} if "log_change" in made.shapes else {})


def said(made, draws, x):
    """Return mean and log noise of every draw at rows, [chain, draw, row], a chain at a time."""
    of_chain = jax.jit(lambda chain: jax.vmap(lambda one: made.predict(one, x))(chain))
    num_chains = len(draws["log_noise"])
    found = [of_chain(common.take(draws, i)) for i in range(num_chains)]
    return tuple(np.stack([np.asarray(one[k]) for one in found]) for k in range(2))


def score(drawn: dict, table: str, arm: str, split: int, num_chains: int) -> dict:
    """Return the scores of what was sampled, of its chains alone, and how they agree."""
    rows, values = usual_tables.split(table, split), drawn["stats"]["log_density"]
    same = np.broadcast_to(drawn["base"][..., None], drawn["mean"].shape)
    log_noise = drawn.get("log_noise", same)
    predicted = Predicted(drawn["mean"], log_noise)
    each = column_scores.log_densities(predicted, rows.y_test)
    near = column_scores.near(values)
    kept = Predicted(*(part[near] for part in predicted))
    found = column_scores.scored(predicted, rows.y_test, rows.sd, split)
    found["by_chains"] = column_scores.by_chains(each, rows.sd, PARTS)
    found["far"] = int((~near).sum())
    without = column_scores.three(kept, rows.y_test, rows.sd, split)
    found |= {f"{name}_without": value for name, value in without.items()}
    found["noise"] = float(rows.sd * np.exp(drawn["base"].astype(np.float64)).mean())
    found["gradients"] = gradients(drawn)
    return found | {"seconds": float(np.sum(drawn["warmup"]["seconds"]))} | agreement(drawn)


def gradients(drawn):
    """Return how many gradients a chain took, on average: of its warm-up and of its draws."""
    steps = drawn["stats"]["integration_steps"]
    return float(steps.sum(axis=1).mean())


def agreement(drawn):
    """Return R-hat, effective draws and drift of predictions, log noise and log density."""
    groups = {
        "predictions": drawn["mean"],
        "log noise": drawn["base"],
        "log density": drawn["stats"]["log_density"],
    }
    check = diagnostics.of_quantities(groups)
    rhats = summaries.summarize(drawn["mean"]).rhat
    return {
        "rhat": dict(zip(check.kinds, check.rhat.tolist(), strict=True)),
        "rhat_median": float(np.median(rhats)),
        "ess": dict(zip(check.kinds, check.ess.tolist(), strict=True)),
        "drift": dict(zip(check.kinds, check.drift.tolist(), strict=True)),
        "divergences": int(drawn["stats"]["diverging"].sum()),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row an arm, whose entries are lists over splits."""
    found = {}
    for name, one in scored.items():
        found.setdefault(name.split("; ")[0], []).append(one)
    return [column_scores.row(arm, each) for arm, each in found.items()]
