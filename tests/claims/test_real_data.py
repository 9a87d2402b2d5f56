"""Claims of the page ``real-data``."""

from tests.claims.reading import stored, within_bounds
from tests.claims.said import says

LINES, CURVES, SHIFTED = "mixed logistic", "mixed logistic, splines", "one network, groups shift it"
LEARNT, ALONE = "a network a cell, shared prior", "a network a cell, alone"
POOLED = "one network for all"
SIZES = 4, 16, 1000  # families a cell; 1000 are all
SD = "standard deviations HalfNormal({})".format


def arms(what="family"):
    """Rows of the arms that answer one question, by number of families and arm."""
    found = [row for row in stored("real_data/predictions") if row["what"] == what]
    return {(row["families"], row["arm"]): row for row in found}


def less(families, arm, other=LINES, what="family"):
    """The ends of the interval of an arm's NLL less another's."""
    found = arms(what)[families, arm]["less_than"][other]["nll"]
    return found["low"], found["high"]


def is_open(ends):
    """Whether an interval holds 0."""
    low, high = ends
    return low < 0 < high


def sensitivity():
    """Rows under other priors and networks, by model and change."""
    return {(row["model"], row["change"]): row for row in stored("real_data/sensitivity")}


@says(
    "real-data",
    """One network whose output sites, plans and families shift has a lower NLL than the mixed
    model, by {glue:text}`arm-net-few` with four families a cell, {glue:text}`arm-net-some` with
    sixteen and {glue:text}`arm-net-all` with all.""",
)
def test_a_network_that_groups_shift_is_better_than_lines():
    for families in SIZES:
        assert arms()[families, SHIFTED]["checks"][0]["mixed"] and less(families, SHIFTED)[1] < 0


@says(
    "real-data",
    """One network for all, told neither site nor plan, is worse than the mixed model, by
    {glue:text}`arm-pooled-some` with sixteen.""",
)
def test_without_sites_and_plans_the_network_is_worse_than_lines():
    assert less(16, POOLED)[0] > 0 and less(1000, POOLED)[0] > 0


@says(
    "real-data",
    """A network for each cell, alone, is worse by {glue:text}`arm-alone-few`,
    {glue:text}`arm-alone-some` and {glue:text}`arm-alone-all`""",
    """With a prior that the cells share it is worse by {glue:text}`arm-learnt-few` with four; with
    more no difference to the mixed model is shown.""",
)
def test_a_network_alone_is_worse_than_lines_and_a_learnt_prior_mends_that():
    for families in SIZES:
        assert arms()[families, ALONE]["checks"][0]["mixed"] and less(families, ALONE)[0] > 0.02
    assert less(4, LEARNT)[0] > 0 and is_open(less(16, LEARNT)) and is_open(less(1000, LEARNT))


@says(
    "real-data",
    """Slopes, heads or whole networks of each site and plan have a higher NLL than the shift at
    every size.""",
)
def test_weights_of_their_own_gain_nothing_over_a_shift():
    own = "mixed logistic, slopes too", "shared features, a head a group", "a network a group"
    for families in SIZES:
        shift = arms()[families, SHIFTED]["scores"]["NLL"]
        assert min(arms()[families, arm]["scores"]["NLL"] for arm in own) > shift


@says(
    "real-data",
    """With these curves the mixed model gains {glue:text}`arm-curves-few`,
    {glue:text}`arm-curves-some` and {glue:text}`arm-curves-all` over straight lines.""",
    "and so are curves in the mixed model, by {glue:text}`arm-curves-some`.",
)
def test_curves_are_better_than_lines_with_enough_families():
    high = {families: less(families, CURVES)[1] for families in SIZES}
    assert high[4] > 0 > high[16] and high[1000] < 0


@says(
    "real-data",
    """The network's gain over the curves is {glue:text}`arm-ahead-few`,
    {glue:text}`arm-ahead-some` and {glue:text}`arm-ahead-all`: none that is shown.""",
)
@says("which-method", "on a real table of families no network was shown to be better than that")
def test_the_network_is_not_shown_to_differ_from_curves():
    assert all(is_open(less(families, SHIFTED, CURVES)) for families in SIZES)


@says("real-data", "no arm that could use that is shown here to beat the sampled curves.")
def test_trees_are_not_shown_to_beat_the_curves():
    for families in SIZES:
        assert less(families, "boosted trees", CURVES)[1] > 0


def part(families, arm, other="curves, families"):
    """The ends of the interval of an ingredient's NLL less another's."""
    found = {(row["size"], row["arm"]): row for row in stored("real_data/ingredients")}
    gap = found[families, arm]["less_than"][other]
    return gap["low"], gap["high"]


@says(
    "real-data",
    """With four families sampled curves lose {glue:text}`part-alone-few` without effects of
    families; with them straight lines do as well ({glue:text}`part-lines-few`). Ridge regression,
    which has none, is not shown to lose there, so what helps may be shrinkage. With sixteen and
    with all it is the bends: lines lose {glue:text}`part-lines-some` and
    {glue:text}`part-lines-all`, and no effects of families are missed.""",
)
def test_with_few_families_shrinkage_helps_and_with_many_curves():
    assert part(4, "curves")[0] > 0 and is_open(part(4, "lines, families"))
    assert is_open(part(4, "lines, penalised")) and is_open(part(4, "curves, penalised"))
    for families in (16, 1000):
        assert part(families, "lines, families")[0] > 0
        assert is_open(part(families, "curves")) and is_open(part(families, "network"))


@says(
    "real-data",
    """Ridge regression with curves is then not shown to lose, by {glue:text}`part-ridge-some` and
    {glue:text}`part-ridge-all`; nor are trees. A network without effects of families has the
    least NLL with all, {glue:text}`part-best` below that ridge, one of many pairs; over sampled
    curves its gain is open.""",
)
def test_with_many_families_ridge_and_trees_are_not_shown_to_differ_from_the_curves():
    for families in (16, 1000):
        for arm in ("curves, penalised", "trees"):
            assert is_open(part(families, arm)), (families, arm)
    found = {row["arm"]: row for row in stored("real_data/ingredients") if row["size"] == 1000}
    assert min(found, key=lambda arm: found[arm]["nll"]) == "network"
    assert part(1000, "network", "curves, penalised")[1] < 0
    assert is_open(part(1000, "network", "curves"))
    assert all(row["check"]["mixed"] for row in stored("real_data/ingredients") if "check" in row)


@says(
    "real-data",
    """hollow: fewer than 400 effective draws of a standard deviation, while every R-hat is within
    its bound.""",
)
def test_every_rhat_is_within_its_bound_and_some_standard_deviations_are_short_of_draws():
    short = set()
    for what in ("family", "cell", "site", "plan"):
        for (_, arm), row in arms(what).items():
            for check in row.get("checks", []):
                assert within_bounds(check) and check["ess_alone"]["log density"] >= 400
                assert check["ess_alone"]["predictions"] >= 1000
                short |= set() if check["mixed"] else {arm}
    assert short and not short & {LINES, CURVES, SHIFTED, ALONE}


@says(
    "real-data",
    """In a new *cell* the network gains {glue:text}`cell-net` over the mixed model, and
    {glue:text}`cell-ahead` over curves, which shows no difference. The prior learnt over cells
    is worse than the mixed model, by {glue:text}`cell-learnt`""",
)
def test_a_new_cell_is_better_served_by_its_site_and_plan_than_by_what_cells_are_like():
    assert less(16, SHIFTED, what="cell")[1] < 0 < less(16, LEARNT, what="cell")[0]
    assert is_open(less(16, SHIFTED, CURVES, what="cell"))


@says(
    "real-data",
    """For a new *site* no arm but the base rate is shown to differ from the mixed model. For a new
    *plan*, where all miss more, the curves gain {glue:text}`plan-curves`.""",
)
def test_nothing_is_shown_to_help_in_a_new_site_and_curves_help_in_a_new_plan():
    for _, arm in arms("site"):
        assert arm in (LINES, "base rate") or is_open(less(16, arm, what="site")), arm
    assert less(16, CURVES, what="plan")[1] < 0


@says(
    "real-data",
    """No change of a prior is shown to change the NLL, and none moves it by 0.002; two hidden
    layers make it worse by {glue:text}`deep`.""",
)
def test_no_change_of_a_prior_is_shown_to_change_the_nll_and_two_layers_are_worse():
    found = sensitivity()
    for model in (LINES, SHIFTED):
        for change in (SD(0.3), SD(3), "kernels not divided"):
            less_nll = found[model, change]["less_than_usual"]["nll"]
            assert found[model, change]["check"]["mixed"]
            assert less_nll["low"] < 0 < less_nll["high"] and abs(less_nll["mean"]) < 0.002
    assert found[SHIFTED, "5 and 5 units"]["less_than_usual"]["nll"]["low"] > 0


@says(
    "real-data",
    """The prior does decide what is said of the sites' standard deviation: the mixed model has
    {glue:text}`sd-sites` for a scale of 0.3, 1 and 3""",
)
def test_the_prior_decides_the_sites_standard_deviation():
    found = sensitivity()
    sds = [found[LINES, c]["sd"]["site"] for c in (SD(0.3), "as in the chapter", SD(3))]
    assert sds == sorted(sds) and sds[2] > 1.5 * sds[0]


def methods(size):
    """Rows of the methods that read minibatches, and of the full sampler, by name."""
    return {row["method"]: row for row in stored("real_data/minibatches") if row["size"] == size}


@says(
    "real-data",
    """SGLD comes closest: no difference in NLL is shown, and its probabilities miss the full
    sampler's by {glue:text}`sgld-misses`. Its spread is too wide""",
    """Fits by SVI miss more, and disagree. For SGHMC no step size met the
    rule: the row is of the smallest, where its chains do not agree.""",
)
def test_langevin_on_minibatches_is_nearest_to_the_full_sampler():
    for size in (4, 1000):
        found = methods(size)
        gap = found["SGLD"]["less_than_full"]
        assert gap["low"] < 0 < gap["high"] and found["SGLD"]["spread"] > 1.05
        others = [found[name] for name in ("SVI, mean field", "SVI, low rank", "SGHMC")]
        near = found["SGLD"]["distance"]
        assert found["full sampling"]["distance"] < near < min(row["distance"] for row in others)
        assert all(max(row["rhat_seen"], row["rhat_log_sd"]) > 1.1 for row in others)
        assert all(gap > 0.01 for gap in found["SGHMC"]["tried"].values() if gap is not None)
