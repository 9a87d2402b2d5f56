"""What stored results must be like so that pages may speak of them, and what no page says."""

from helpers import common

import numpy as np

from tests.claims.reading import mixed, rows

RIVALS = "what_the_gain_is_made_of/rivals"


def test_most_chains_of_the_rivals_have_mixed():
    few = [
        sum(not mixed(check) for check in row["check"])
        for row in rows(RIVALS).values()
        if "check" in row
    ]
    assert max(few) <= 2 and sum(few) <= 6


def test_grids_of_the_rivals_do_not_bind():
    rivals, settings = rows(RIVALS), common.read_result(RIVALS)["settings"]["heads"]
    for name, row in rivals.items():
        for left_out in row["more"].get("left_out_by_scale", []):
            assert 0 < np.argmin(left_out) < len(left_out) - 1, name
    for size in (5, 32):
        decays = rivals[f"{size} features, trained heads"]["more"]["decay"]
        assert min(settings["decays"]) < min(decays) and max(decays) < max(settings["decays"])
