"""Which mode of the hierarchical posterior holds the mass on other draws of the data: the runs of ``masses``."""

from experiments.hierarchical_bnn import masses, regions

SETTINGS = masses.SETTINGS | {"num_redraws": 5, "num_tasks": 18}
SMALL = masses.SMALL
unit, score, rows = masses.unit, masses.score, masses.rows


def units():
    """A region of a redraw's posterior each."""
    return {
        f"redraw {redraw}, {hyperprior}, {regions.LAYERS[region]} widest": {
            "hyperprior": hyperprior,
            "region": region,
            "redraw": redraw,
            "num_tasks": SETTINGS["num_tasks"],
            "num_runs": SETTINGS["num_runs"],
        }
        for redraw in range(SETTINGS["num_redraws"])
        for hyperprior in SETTINGS["hyperpriors"]
        for region in range(3)
    }
