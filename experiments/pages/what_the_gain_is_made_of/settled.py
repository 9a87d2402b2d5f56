"""The two arms of `arms` whose difference decides what sharing adds, on data sets drawn after the
first were seen.

The rule was fixed by the first twelve: the interval of the paired difference on data sets where
both fits have mixed, beside that on all. Units, scores and checks are those of `arms`; a row holds
one arm on one data set, so that more data sets can be added to these.
"""

from experiments.pages.what_the_gain_is_made_of import arms

FIRST = arms.SETTINGS["num_redraws"]  # those before are in the result of `arms`
SETTINGS = {"num_redraws": 48, "arms": ["chosen", "shared, N+(0, 1)"]}
SIZES = {"num_tasks": 18} | {name: arms.SETTINGS[name] for name in ("num_warmup", "num_samples")}
SMALL = {
    "arm": "shared, N+(0, 1)",
    "redraw": FIRST,
    "num_tasks": 6,
    "num_warmup": 200,
    "num_samples": 300,
}


def units():
    """An arm on a data set each."""
    redraws = range(FIRST, FIRST + SETTINGS["num_redraws"])
    return {
        f"{arm}, {i}": {"arm": arm, "redraw": i, **SIZES}
        for i in redraws
        for arm in SETTINGS["arms"]
    }


def unit(**setting):
    """Fit one arm to one data set, as `arms` does."""
    return arms.unit(**setting)


def score(drawn, **setting):
    """Score it as `arms` does: entries by arm."""
    return arms.score(drawn, **setting)
