"""What stored results must be like so that pages may speak of them, and what no page says."""

from helpers import common

import json

import numpy as np

from tests.claims.reading import mixed, rows, stored

RIVALS = "what_the_gain_is_made_of/rivals"


def test_most_chains_of_the_rivals_have_mixed():
    few = [
        sum(not mixed(check) for check in row["check"])
        for name, row in rows(RIVALS).items()
        # but the network itself, and what page and test say of the latent angle
        if "check" in row and not name.startswith(("shared, N+(0, 1)", "latent angle"))
    ]
    assert max(few) <= 2 and sum(few) <= 6


def checks_in(part):
    """Yield the stored checks of runs in a part of a result."""
    if isinstance(part, dict):
        if isinstance(part.get("rhat"), dict) and "mixed" in part and "bfmi" in part:
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from checks_in(inner)


def test_what_has_mixed_is_said_by_the_verdict_as_it_is():
    """Rows keep what was measured, so that a rule that has changed since is seen here."""
    paths = common.RESULTS.glob("*/*.json")
    found = {path.stem: list(checks_in(json.loads(path.read_text()))) for path in paths}
    assert sum(map(len, found.values())) > 1000
    for name, checks in found.items():
        assert all(check["mixed"] == mixed(check) for check in checks), name


def test_grids_of_the_rivals_do_not_bind():
    rivals, settings = rows(RIVALS), common.read_result(RIVALS)["settings"]["heads"]
    for name, row in rivals.items():
        for left_out in row["more"].get("left_out_by_scale", []):
            assert 0 < np.argmin(left_out) < len(left_out) - 1, name
    for size in (5, 32):
        decays = rivals[f"{size} features, trained heads"]["more"]["decay"]
        assert min(settings["decays"]) < min(decays) and max(decays) < max(settings["decays"])


def test_no_run_of_the_ladder_failed():
    cells = stored("comparing_inference/ladder")[1:]
    assert all(row["failed"] == 0 for row in cells if not row["empty"])


def test_chains_of_references_hardly_diverged_and_clouds_arrived():
    for name in ("references", "harder"):
        for row in stored(f"comparing_inference/{name}"):
            if row["method"] == "chains":
                assert row["check"]["divergences"] <= (name == "harder")
            else:
                assert row["power"] == 1
