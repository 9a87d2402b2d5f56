"""Which mode holds the mass on two more redraws of eighteen tasks, by the same runs as
``masses_of_redraws``.
"""

from experiments.methods import region_masses
from experiments.pages.hierarchical_bnn import masses

SETTINGS = {"redraws": [3, 4], "num_tasks": 18, "num_runs": 3}
unit, score, rows = masses.unit, region_masses.score, masses.rows


def units():
    """A region of a posterior each."""
    posteriors = [(redraw, SETTINGS["num_tasks"]) for redraw in SETTINGS["redraws"]]
    return masses.of_regions(posteriors, SETTINGS["num_runs"])


SMALL = {"hyperprior": "HalfNormal(5)", "region": 1, "redraw": 3, "num_tasks": 2, "num_runs": 2}
