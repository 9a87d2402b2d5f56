"""The prior of the shared network chosen by folds, as one arm of `arms` does, on two more of its
data sets.
"""

from experiments.pages.what_the_gain_is_made_of import arms

SETTINGS = {"redraws": [1, 2], "arm": arms.BY_FOLDS}
SIZES = {"num_tasks": 18} | {name: arms.SETTINGS[name] for name in ("num_warmup", "num_samples")}
SMALL = {"arm": SETTINGS["arm"], "redraw": 1, "num_tasks": 2, "num_warmup": 100, "num_samples": 150}


def units():
    """A data set each: twenty joint fits choose, one is scored."""
    return {
        f"{SETTINGS['arm']}, {i}": {"arm": SETTINGS["arm"], "redraw": i, **SIZES}
        for i in SETTINGS["redraws"]
    }


def unit(**setting):
    """Choose and fit, as `arms` does."""
    return arms.unit(**setting)


def score(drawn, **setting):
    """Score it as `arms` does: entries by arm."""
    return arms.score(drawn, **setting)
