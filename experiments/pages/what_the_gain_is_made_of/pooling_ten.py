"""Ten labels a task, of eighteen tasks and of fifty: between five and fifty of ``pooling``.

Arms, folds, lengths and scores are those of ``pooling``; the data sets are new.
"""

from experiments.pages.what_the_gain_is_made_of import pooling

NUM_REDRAWS = {"18, 10": 8, "50, 10": 8}
SETTINGS = {"num_redraws": NUM_REDRAWS}
SMALL = {"setting": "18, 10", "arm": "N(0, 1)", "redraw": 0}
unit, score = pooling.unit, pooling.score


def places():
    """Return settings and the arms at each."""
    return [(setting, arm) for setting in NUM_REDRAWS for arm in pooling.ARMS]


def units():
    """Return an arm at one setting on a data set each, the longest first."""
    return {
        f"{setting}, {arm}, {i}": {"setting": setting, "arm": arm, "redraw": i}
        for setting, arm in reversed(places())
        for i in range(NUM_REDRAWS[setting])
    }


def rows(scored):
    """Rows as of ``pooling``."""
    return pooling.rows_of(scored, places(), NUM_REDRAWS)
