"""Which mode holds the mass on redrawn data sets of eighteen tasks, by the same runs as ``masses``, but fewer of them.

On the sources' data the lowest run of the heaviest region was 28 or more above the highest run of the others; for such
a distance three runs a region do.
"""

from experiments.hierarchical_bnn import masses, regions

SETTINGS = {"hyperpriors": ["HalfNormal(1)"], "num_redraws": 2, "num_tasks": 18, "num_runs": 3}


def units():
    """A region of a posterior each."""
    return {
        f"{redraw}, {hyperprior}, {regions.LAYERS[region]} widest": {
            "hyperprior": hyperprior,
            "region": region,
            "redraw": redraw,
            "num_tasks": SETTINGS["num_tasks"],
            "num_runs": SETTINGS["num_runs"],
        }
        for hyperprior in SETTINGS["hyperpriors"]
        for redraw in range(SETTINGS["num_redraws"])
        for region in range(3)
    }


SMALL = {"hyperprior": "HalfNormal(5)", "region": 0, "redraw": 0, "num_tasks": 2, "num_runs": 2}
unit, score, rows = masses.unit, masses.score, masses.rows
