"""Claims of the page ``originals``."""

import numpy as np
from scipy import stats

from tests.claims.reading import rows
from tests.claims.said import says

PRINTED = {  # training and test accuracy in %, by the stored row that repeats them
    "flat": [(86.78, 83.78), (86.67, 83.56)],
    "flat, with biases": [(86.89, 82.22)],
    "hierarchical": [(91.11, 89.78), (90.78, 89.33)],
    "output layer shared": [(91.00, 87.33)],
}
ARMS = {
    "flat": "N(0, 1)",
    "hierarchical": "every layer, means' scale 1, HalfNormal(1)",
    "output layer shared": "output layer shared, means' scale 1, HalfNormal(1)",
}


def own():
    """The sources' models on the sources' points, by four chains or by single ones."""
    return rows("originals/models")


def redraws(score):
    """A score of the same models on redrawn data sets, by model."""
    found = rows("what_the_gain_is_made_of/attribution")
    both = {name: found[arm]["more"] | {"nll": found[arm]["nll"]} for name, arm in ARMS.items()}
    return {name: np.array(row[score]) for name, row in both.items()}


@says(
    "originals",
    """The largest of these twelve differences is {glue:text}`largest-gap` points, less than one
    {term}`standard error` ({glue:text}`standard-error`).""",
)
def test_accuracies_on_their_own_points_differ_by_less_than_a_standard_error():
    gaps = [
        np.abs(np.subtract(pair, (own()[name]["train"], own()[name]["test"])))
        for name, pairs in PRINTED.items()
        for pair in pairs
    ]
    assert np.size(gaps) == 12 and np.max(gaps) < 100 * np.sqrt(0.87 * 0.13 / 900)


@says("originals", "On these eighteen tasks the hierarchical network is better beyond doubt.")
def test_the_hierarchical_network_is_better_on_the_sources_points():
    flat, every = (set(own()[name]["wrong_points"]) for name in ("flat", "hierarchical"))
    gained, lost = len(flat - every), len(every - flat)
    assert gained > 2 * lost and stats.binomtest(gained, gained + lost).pvalue < 1e-3


@says("originals", "The sources' numbers lie where their models come out on redrawn data sets")
def test_printed_accuracies_lie_among_those_of_redraws():
    train, test = redraws("accuracy_train"), redraws("accuracy_900")
    for name, pairs in PRINTED.items():
        for pair in pairs:
            for printed, values in zip(pair, (train, test), strict=True):
                values = values[name.removesuffix(", with biases")]
                assert abs(printed - values.mean()) < 3 * values.std(ddof=1)


@says(
    "originals",
    """The hierarchical network is more accurate than the flat one in {glue:text}`redraw-wins`
    redraws, and its {term}`NLL` is lower in {glue:text}`redraw-wins-nll`.""",
)
def test_the_hierarchical_network_is_better_on_nearly_all_redraws():
    accuracy, nll = redraws("accuracy_900"), redraws("nll")
    assert (accuracy["hierarchical"] > accuracy["flat"]).mean() > 0.9
    assert (nll["hierarchical"] < nll["flat"]).mean() > 0.9


@says(
    "originals",
    """Their data set overstates the difference: Wiecki and the NumPyro port print gains of
    {glue:text}`their-gap` points, where the redraws give {glue:text}`redraw-gap`""",
)
def test_the_sources_data_set_overstates_the_difference():
    accuracy = redraws("accuracy_900")
    gap = accuracy["hierarchical"] - accuracy["flat"]
    assert min(89.78 - 83.78, 89.33 - 83.56) > gap.mean()


@says(
    "originals",
    """Here the standard deviations lie away from zero, so a trajectory meets the wall seldom; a
    few do. The logarithm removes the wall""",
)
def test_trajectories_meet_a_wall_at_zero_and_none_in_the_logarithm():
    raw, log = (own()[f"single chains, {kind}"] for kind in ("raw sd", "log sd"))
    assert sum(raw["divergences_by_chain"]) > 5 and sum(log["divergences_by_chain"]) == 0
    assert min(np.min([*row["more"]["sd_by_chain"].values()]) for row in (raw, log)) > 0.2


@says("originals", "From near zero all arrive, from N(0, 1) not all do.")
def test_single_chains_arrive_from_near_zero_and_not_all_from_afar():
    arrived = {}
    for start in ("0.05", "1.0"):
        sds = own()[f"single chains, start {start}"]["more"]["sd_by_chain"]
        arrived[start] = (np.maximum(sds["Dense_0"], sds["Dense_1"]) < 0.1).mean()
    assert arrived["0.05"] == 1 and 0 < arrived["1.0"] < 1


@says(
    "originals", "In the four chains they are not, and few effective draws stand behind any of them"
)
def test_correlations_of_group_means_differ_between_halves_of_a_chain():
    more = own()["hierarchical"]["more"]
    assert max(more["ess_of_means"]) < 100 and np.median(more["halves_agree"]) < 0.5
