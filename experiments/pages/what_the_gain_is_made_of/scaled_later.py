"""The model whose gain was picked among many arms of ``attribution``, on data sets that had no part
in it: its input layer alone differs between tasks, the means' scales are learnt, all scales have
HalfNormal(5).

Data sets are the first of those that ``arms`` has beyond the ones of ``attribution`` and of its own
first question, so that NLLs pair with the chosen scales and the hierarchical network there. Chains
are twice as long as in ``attribution``, where most were short of effective draws.
"""

from experiments.methods import scoring
from experiments.pages.what_the_gain_is_made_of import attribution

SETTINGS = {"first": 12, "num_redraws": 24}
SIZES = {"num_tasks": 18, "num_warmup": 300, "num_samples": 1600, "target_acceptance": 0.95}
ARM = attribution.setting([attribution.INPUT], "learnt", attribution.WIDE)
SMALL = {"redraw": 12} | SIZES | {"num_tasks": 6, "num_samples": 600}


def units():
    """A data set each."""
    first = SETTINGS["first"]
    return {f"{i}": {"redraw": i, **SIZES} for i in range(first, first + SETTINGS["num_redraws"])}


def unit(redraw, num_tasks, **sizes):
    """Fit the model to one data set."""
    return attribution.unit(redraw, num_tasks=num_tasks, **ARM, **sizes)


def score(drawn, redraw, num_tasks, **_):
    """Scores, and whether chains have mixed, as in ``attribution``."""
    special, means = ARM["special"], ARM["means"]
    return attribution.score(drawn, redraw, special=special, means=means, num_tasks=num_tasks)


def rows(scored):
    """One row, with entries over data sets."""
    return [scoring.row("input layer alone, scaled", [*scored.values()])]
