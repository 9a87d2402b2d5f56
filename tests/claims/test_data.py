"""Claims of the page ``data``."""

import numpy as np

from tests.claims.centres import above, joint
from tests.claims.reading import lower_end, upper_end
from tests.claims.said import says


@says(
    "data",
    "Losses are lower on the published tasks, for reasons that {ref}`gain-centre` takes apart.",
)
def test_the_sources_recipe_is_easier_and_joint_scaling_is_a_part_of_it():
    ours, theirs = (above(g, "chosen", "as now") for g in ("rotated", "sources"))
    assert lower_end(joint()) > 0 and lower_end(ours) > upper_end(theirs)


@says(
    "data",
    "Losses are lower on the published tasks, for reasons that {ref}`gain-centre` takes apart.",
)
def test_the_sources_recipe_is_easier_with_centre_and_scale_known():
    ours, theirs = (above(g, "chosen", "exact") for g in ("rotated", "sources"))
    error = np.hypot(*(of.std(ddof=1) / np.sqrt(len(of)) for of in (ours, theirs)))
    assert ours.mean() - theirs.mean() > 2 * error
