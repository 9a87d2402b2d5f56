"""Runs of ``visits`` once more where 2000 draws a chain were too few: regions share the mass,
passages are seldom.
"""

from experiments.pages.hierarchical_bnn import visits

# hyperprior, redraw, number of tasks
SETTINGS = {"posteriors": [["HalfNormal(5)", 0, 5]], "num_samples": 30_000}
SMALL = visits.setting("HalfNormal(1)", 1.0, 0, 2) | {"num_samples": 1000}


def units():
    """A posterior each."""
    return {
        f"{hyperprior}, redraw {redraw}, {num_tasks} tasks": visits.setting(
            hyperprior, 1.0, redraw, num_tasks
        )
        | {"num_samples": SETTINGS["num_samples"]}
        for hyperprior, redraw, num_tasks in SETTINGS["posteriors"]
    }


def unit(**setting):
    """Sample from starts in all regions."""
    return visits.sampled(**setting)


def score(drawn, num_samples, **setting):
    """Shares of the draws by region, and how well all chains agree."""
    return visits.score(drawn, **setting) | {"num_samples": num_samples}
