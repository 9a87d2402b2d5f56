"""Claims of the page ``usual-tables``."""

from helpers.common import read_result

import numpy as np
from scipy import stats

from tests.claims.reading import rows
from tests.claims.said import says
from tests.claims.usual_tables import MAIN, SECOND, arms, ends, four_chains, is_level, log_density


@says(
    "usual-tables",
    "something that is no network is level with our sampled network by root mean square error",
    "By RMSE and CRPS no difference from the Matérn process is shown",
)
def test_a_process_is_level_by_rmse_and_crps():
    for score in ("rmse", "crps"):
        values = np.subtract(arms()["process, Matern 5/2"][score], arms()[MAIN][score])
        assert is_level(values)


@says(
    "usual-tables",
    """sixteen short chains of the network are ahead on *yacht*, of the Matérn process by
    {glue:text}`ahead-matern` nats a row, and of an ensemble, of dropout and of trees by
    about a nat or more""",
    "In log density they are ahead of it by {glue:text}`ahead-matern`.",
)
def test_chains_are_ahead_in_log_density():
    rivals = set(arms()) - {MAIN, SECOND, "scales of 1"}
    ahead = {name: ends(log_density(MAIN) - log_density(name)) for name in rivals}
    assert all(low > 0 for low, _ in ahead.values())
    means = {name: np.mean(ends) for name, ends in ahead.items()}
    others = ("ensemble of 5", "trees", "trees, quantiles", "MC dropout, free precision")
    assert min(means[name] for name in others) > 0.9


@says("usual-tables", "and their RMSE is smaller.")
def test_chains_have_a_smaller_rmse_than_trained_networks():
    for name in ("ensemble of 5", "Laplace", "mean field"):
        assert np.subtract(arms()[name]["rmse"], arms()[MAIN]["rmse"]).mean() > 0.05


@says(
    "usual-tables",
    "splits the folds choose the longest training, 3000 steps",
    "Two ends of the grid of scales bind, too: on {glue:text}`ends-yacht` of twenty splits",
)
def test_which_ends_of_the_trained_networks_grid_bind():
    grid = read_result("usual_tables/trained_yacht")["settings"]["grid"]
    stops = rows("usual_tables/trained_yacht")["stops"]["steps"]
    assert grid["steps"] == 3000 and stops.count(3000) > 10
    (low, least), (most, high) = np.min(grid["scales"], axis=0), np.max(grid["scales"], axis=0)
    for name in ("ensemble of 5", "Laplace"):
        assert all(one < most and other > least for one, other in arms()[name]["scales"])
    assert sum(one == low or other == high for one, other in arms()["ensemble of 5"]["scales"]) >= 8
    linear = [arms(table)["Laplace"]["scales"] for table in ("concrete", "energy")]
    assert min(scales.count([low, high]) for scales in linear) >= 10


@says("usual-tables", "four chains have most of the gain")
def test_four_chains_have_more_than_half_of_the_gain_over_the_ensemble():
    of_four = (four_chains() - log_density("ensemble of 5")).mean()
    assert of_four > 0.5 * (log_density(MAIN) - log_density("ensemble of 5")).mean()


@says("usual-tables", "that the scales should be learnt is not shown by this table.")
def test_learnt_scales_are_not_shown_to_be_ahead():
    assert ends(four_chains() - log_density("scales of 1"))[0] < 0


@says(
    "usual-tables",
    "Our repetition of the public experiments has the published means",
    "On each split the published grid takes its largest precision, 0.75.",
    "the published score measures the end of a grid.",
)
def test_dropout_is_repeated_and_its_grid_binds():
    published = arms()["MC dropout, published grid"]
    assert set(published["tau"]) == {0.75}
    for score, mean in (("rmse", 0.67), ("log_density", -1.25)):
        error = stats.sem(published[score])
        assert abs(np.mean(published[score]) - mean) < 2 * error
    assert ends(log_density("MC dropout, free precision") - log_density(published["name"]))[0] > 0


@says(
    "usual-tables",
    "On `yacht` no arm of chains is a {term}`posterior`.",
    "Their R-hat is far above what chance explains",
    "None of those chains has mixed",
)
def test_no_chains_have_mixed():
    for name in (MAIN, SECOND, "scales of 1"):
        assert min(min(one.values()) for one in arms()[name]["rhat"]) > 1.1


@says(
    "usual-tables",
    "four chains of a quarter of the length are ahead of one whole chain",
    """So if chains run side by side, start more before you make them longer; on *energy* alone that
    is not shown. At equal cost, warm-up counted, it is shown on no table""",
)
def test_chains_before_length_where_warm_up_is_not_counted():
    for table in ("concrete", "energy", "yacht"):
        grids = np.array(arms(table)[MAIN]["by_chains"])  # [split, number of chains, part]
        assert is_level(grids[:, 1, 0] - grids[:, 0, 2])
        assert (ends(grids[:, 2, 0] - grids[:, 0, 2])[0] > 0) == (table != "energy")


@says(
    "usual-tables",
    "By log density it is level with one noise, four chains against four",
    "On yacht it errs many times as much on most splits, and by log density one cannot tell.",
    "all but one of the marks lie at nine to sixty times the error, half of them above zero",
    "where all four give the steep end up, none is far from the others.",
)
def test_a_second_output_has_the_log_density_and_not_the_mean():
    assert is_level(log_density(SECOND) - four_chains())
    off = np.subtract(arms()[SECOND]["rmse"], arms()[MAIN]["rmse"])
    assert (off > 2).sum() >= 14
    times = np.divide(arms()[SECOND]["rmse"], arms()[MAIN]["rmse"])
    assert (times > 5).sum() >= 14
    gain = log_density(SECOND) - four_chains()
    assert 6 <= (gain > 0).sum() <= 16
    far = np.array(arms()[SECOND]["far"])
    assert (off[far == 0] > 5).sum() >= 4


@says(
    "usual-tables",
    "**Noise by a second output** gains here",
    "It has a price, as on `yacht`, and a small one",
    "in CRPS no difference is shown",
)
def test_on_concrete_a_second_output_gains_at_a_small_price():
    gain = log_density(SECOND, "concrete") - four_chains("concrete")
    assert gain.mean() > 0.1 and (gain > 0).sum() >= 15
    times = np.divide(*(arms("concrete")[name]["rmse"] for name in (SECOND, MAIN)))
    assert 1 < times.mean() < 1.25 and times.max() < 2
    assert is_level(np.subtract(*(arms("concrete")[name]["crps"] for name in (SECOND, MAIN))))


@says(
    "usual-tables",
    "Its chains are the worst of the three arms",
    "no difference is shown ({glue:text}`concrete-far-gain`)",
)
def test_on_concrete_far_chains_are_not_shown_to_be_worth_something():
    found = arms("concrete")
    assert sum(found[SECOND]["divergences"]) > 500
    assert sum(found[MAIN]["divergences"]) == sum(found["scales of 1"]["divergences"]) == 0
    assert 5 < sum(found[SECOND]["far"]) < 40
    scores = (found[SECOND][name] for name in ("log_density", "log_density_without"))
    assert is_level(np.subtract(*scores))


@says(
    "usual-tables",
    "**Learnt scales** matter on this table",
    """Yet their chains are, with those of `airfoil`, the only ones on these tables that nearly
    agree""",
    "Chains that nearly agree, under the wrong prior, forecast worse than an average over chains",
)
def test_on_concrete_scales_are_worth_learning_and_only_fixed_ones_mix():
    found = arms("concrete")
    assert ends(four_chains("concrete") - log_density("scales of 1", "concrete"))[0] > 0
    assert ends(np.subtract(found["scales of 1"]["rmse"], found[MAIN]["rmse"]))[0] > 0
    assert max(one["predictions"] for one in found["scales of 1"]["rhat"]) < 1.1
    for name in (MAIN, SECOND):
        assert min(one["predictions"] for one in found[name]["rhat"]) > 1.15


@says("usual-tables", "**Chains before length** is worth less here")
def test_on_concrete_chains_come_before_length_and_gain_less():
    gains = {}
    for table in ("yacht", "concrete"):
        grids = np.array(arms(table)[MAIN]["by_chains"])
        gains[table] = grids[:, 2, 0] - grids[:, 0, 2]
    assert ends(gains["concrete"])[0] > 0
    assert gains["concrete"].mean() < 0.5 * gains["yacht"].mean()


@says(
    "usual-tables",
    "**Dropout** has the published means once more",
    """A free precision gains nothing that is shown, though the largest of the published grid
    is taken on most splits.""",
)
def test_on_concrete_dropout_is_repeated_and_its_grid_does_not_bind():
    found = arms("concrete")
    for score, mean in (("rmse", 4.83), ("log_density", -2.94)):
        values = found["MC dropout, published grid"][score]
        assert abs(np.mean(values) - mean) < 2 * stats.sem(values)
    free = log_density("MC dropout, free precision", "concrete")
    assert is_level(free - log_density("MC dropout, published grid", "concrete"))


@says(
    "usual-tables",
    "On *concrete* the trees are level with them by log density, too",
    "Boosted trees with one noise are level with the sixteen chains",
    "by CRPS the chains are better",
    "An ensemble of five is level by log density",
    "Against these two rivals, by log density, it is the noise that decides",
)
def test_on_concrete_trees_and_an_ensemble_are_level_until_the_noise_depends_on_the_columns():
    found = arms("concrete")
    for name in ("trees", "ensemble of 5"):
        low, high = ends(log_density(MAIN, "concrete") - log_density(name, "concrete"))
        assert low < 0.05 and 0 < high < 0.4
        assert (log_density(SECOND, "concrete") - log_density(name, "concrete")).mean() > 0.15
    assert is_level(np.subtract(found["trees"]["rmse"], found[MAIN]["rmse"]))
    assert np.subtract(found["trees"]["crps"], found[MAIN]["crps"]).mean() > 0.05
    assert np.subtract(found["ensemble of 5"]["rmse"], found[MAIN]["rmse"]).mean() > 0.1
    for name in ("process, RBF", "process, Matern 5/2"):
        assert ends(log_density(MAIN, "concrete") - log_density(name, "concrete"))[0] > 0
    assert np.subtract(*(found[n]["log_density"] for n in ("trees", "trees, quantiles"))).mean() > 0


@says(
    "usual-tables",
    "On *energy* the sixteen chains lead by both scores",
    "**Learnt scales** lead by every score, by RMSE barely.",
    "splits they take the most trees that are offered.",
    "here, as on `concrete`, the scales are worth learning.",
)
def test_on_energy_the_chains_lead():
    found = arms("energy")
    for name in found.keys() - {MAIN, SECOND}:
        assert ends(log_density(MAIN, "energy") - log_density(name, "energy"))[0] > 0.1
        for score in ("rmse", "crps"):
            assert np.subtract(found[name][score], found[MAIN][score]).mean() > 0.03
    for score in ("rmse", "crps"):
        assert np.subtract(found[SECOND][score], found[MAIN][score]).mean() > 0.02
    assert log_density(MAIN, "energy").mean() > log_density(SECOND, "energy").mean()
    assert ends(np.subtract(found["trees"]["crps"], found[MAIN]["crps"]))[0] > 0
    assert ends(four_chains("energy") - log_density("scales of 1", "energy"))[0] > 0
    assert found["trees"]["number"].count(1000) > 10


@says(
    "usual-tables",
    "**Noise by a second output** gains nothing that is shown",
    "**Chains** agree no better than on `yacht`",
    "That four quarter chains beat one whole one is not shown here",
)
def test_on_energy_a_second_output_and_quarter_chains_are_not_shown_to_gain():
    assert is_level(log_density(SECOND, "energy") - four_chains("energy"))
    assert np.subtract(*(arms("energy")[name]["rmse"] for name in (SECOND, MAIN))).mean() > 0.05
    for name in (MAIN, SECOND):
        assert min(one["predictions"] for one in arms("energy")[name]["rhat"]) > 1.5
    grids = np.array(arms("energy")[MAIN]["by_chains"])
    assert ends(grids[:, 2, 0] - grids[:, 0, 2])[0] < 0


@says(
    "usual-tables",
    "**Dropout** has the published means again, and the end of its grid binds",
    "of twenty splits it takes the least rate.",
)
def test_on_energy_dropout_is_repeated_and_its_grid_binds():
    published = arms("energy")["MC dropout, published grid"]
    assert set(published["tau"]) == {0.75}
    for score, mean in (("rmse", 0.54), ("log_density", -1.21)):
        assert abs(np.mean(published[score]) - mean) < 2 * stats.sem(published[score])
    free = log_density("MC dropout, free precision", "energy")
    assert ends(free - log_density(published["name"], "energy"))[0] > 0
    assert arms("energy")["MC dropout, free precision"]["rate"].count(0.002) > 10
