"""What the place of a centre is worth, for the claims of three pages."""

import numpy as np

from tests.claims.reading import rows, stored


def above(generator, arm, known):
    """NLL above the Bayes optimum with the centre known in one way, by data set."""
    row = rows("what_the_gain_is_made_of/centres")[f"{generator}, {arm}, {known}"]
    return np.subtract(row["nll"], row["optimum"])


def saved(arm, known, generator="rotated"):
    """NLL with the centre as now less that with it known in another way, by data set."""
    return above(generator, arm, "as now") - above(generator, arm, known)


def sharing(known):
    """What the hierarchical network gains over the chosen scales, by data set."""
    return above("rotated", "chosen", known) - above("rotated", "shared", known)


def joint():
    """NLL of the sources' recipe scaled by 50 points less that scaled by all, by data set."""
    (row,) = stored("what_the_gain_is_made_of/joint_scaling")
    return np.subtract(row["nll"], row["optimum"]) - above("sources", "chosen", "as now")
