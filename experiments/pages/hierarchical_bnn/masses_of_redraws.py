"""Which mode holds the mass on redrawn data sets, by the same runs as ``masses``, but fewer of
them.

On the sources' data the lowest run of the heaviest region was 28 or more above the highest run of
the others; for such a distance three runs a region do. With two tasks and five regions share the
mass, and five runs know it roughly: where a rare run finds most of the evidence, their spread is
too small an error.
"""

from experiments.methods import region_masses
from experiments.pages.hierarchical_bnn import masses

SETTINGS = {  # by the number of tasks
    "num_redraws": {"2": 5, "5": 5, "18": 3},
    "num_runs": {"2": 5, "5": 5, "18": 3},
}
unit, score, rows = masses.unit, region_masses.score, masses.rows


def units():
    """A region of a posterior each."""
    found = {}
    for num_tasks, num_runs in SETTINGS["num_runs"].items():
        redraws = range(SETTINGS["num_redraws"][num_tasks])
        found |= masses.of_regions([(redraw, int(num_tasks)) for redraw in redraws], num_runs)
    return found


SMALL = {"hyperprior": "HalfNormal(5)", "region": 0, "redraw": 0, "num_tasks": 2, "num_runs": 2}
