"""The table of shaken claims: what makes a bound, how far runs spread, which claims broke."""

import json

import numpy as np
import pytest
import shake


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Three runs of a chapter with two claims, one of them in a loop; the last run breaks a
    claim.
    """
    monkeypatch.setattr(shake, "FOLDER", tmp_path)
    monkeypatch.setattr(shake, "PERTURBATIONS", {"as it is": {}, "seeds + 1": {}, "seeds + 2": {}})
    for name, left in zip(shake.PERTURBATIONS, (1.0, 2.0, 6.0), strict=True):
        claims = [
            ("abs(gap) <= 5 * error", "<=", left, 5.0),
            ("n == 3", "==", "3", "3"),
            ("n == 3", "==", "4", "4"),
        ]
        folder = shake.folder_of(name)
        folder.mkdir()
        records = [
            {
                "cell": 1,
                "line": 2,
                "text": text,
                "sides": [(sign, a, b)],
                "holds": not isinstance(a, float) or a <= b,
            }
            for text, sign, a, b in claims
        ]
        (folder / "moons.jsonl").write_text(
            "".join(json.dumps(record) + "\n" for record in records)
        )
    return shake.table(["moons"], list(shake.PERTURBATIONS))


def test_a_claim_has_the_mean_and_spread_of_its_runs(runs):
    row = runs[0]
    assert row["sides"] == [1.0, "<=", 5.0] and row["kind"] == "Monte Carlo error"
    assert (row["runs"], row["held"]) == (3, 2)
    gaps = np.array([4.0, 3.0, -1.0])
    np.testing.assert_allclose([row["gap"], row["spread"]], [gaps.mean(), gaps.std(ddof=1)])
    np.testing.assert_allclose(row["margin"], gaps.mean() / gaps.std(ddof=1))
    assert "held 2 of 3, chance 1e-05" in shake.row_text(row)


def test_what_a_loop_asserts_twice_is_two_exact_claims(runs):
    assert [(row["occurrence"], row["kind"], row["held"]) for row in runs[1:]] == [
        (1, "exact", 3),
        (2, "exact", 3),
    ]
    assert all("margin" not in row for row in runs[1:])


@pytest.mark.parametrize(
    "text, sign, kind",
    [
        ("check.rhat <= check.rhat_bound", "<=", "R-hat"),
        ("np.abs(found - expected) <= 6 * gap_error", "<=", "Monte Carlo error"),
        # An effect: how likely it is to be missed is not in the bound.
        ("gain - half > 5 * error", ">", "measured margin"),
        ("verdict.ess.min() >= 400", ">=", "effective draws"),
        ("from_process[1000] < from_process[300]", "<", "measured margin"),
        ("0.005 < error < 0.022", "<", "measured margin"),
        ("per_weight == 18", "==", "exact"),
    ],
)
def test_kinds_of_bounds(text, sign, kind):
    assert shake.kind_of(text, sign) == kind


def test_an_unknown_chapter_is_named():
    with pytest.raises(SystemExit, match=r"chapters: given \['missing'\], expected some of"):
        shake.main(["missing"])
