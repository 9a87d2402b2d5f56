"""Claims of the page ``comparing-inference``."""

import numpy as np

from tests.claims.reading import lower_end, mixed, rows, stored
from tests.claims.said import says

MINIBATCHES = ["SGLD", "SGLD, cyclical"]
GUIDES = ["SVI, mean-field", "SVI, low-rank", "SVI, full-rank", "SVI, flow"]
BOOK = "the book's sampler"


def reference():
    """The two long runs, held against each other."""
    return stored("comparing_inference/ladder")[0]


def cells(budget):
    """The ladder's cells that are defined at a budget, by method."""
    found = stored("comparing_inference/ladder")[1:]
    return {row["name"]: row for row in found if row["budget"] == budget and not row["empty"]}


def longest():
    """Runs of the nearest methods with ten million gradients, by method."""
    return cells(10_000_000)


def over(budget, one, other, other_budget=None):
    """Distance of one method less another's, by seed."""
    return np.subtract(cells(budget)[one]["tv"], cells(other_budget or budget)[other]["tv"])


def means(budget, kind):
    """Mean distance of methods of a kind, minibatches left out, by method."""
    found = cells(budget).items()
    return {
        name: row["tv_mean"]
        for name, row in found
        if row["kind"] == kind and name not in MINIBATCHES
    }


def times(budget):
    """Time of a gradient over that of a bare one, by method."""
    found = stored("comparing_inference/seconds")
    return {row["name"]: row["times_bare"] for row in found if row["budget"] == budget}


def from_chains(runs, chains):
    """How far the mean of runs is off, and what their spread explains, at points taken together:
    four runs tell little of their own spread at one point.
    """
    chance = np.sqrt(2 / np.pi * runs.var(axis=0, ddof=1) / len(runs)).mean()
    return np.abs(runs.mean(axis=0) - chains).mean(), chance


def references(method, task):
    """Predictions of the runs of a method on a task, [run, point]."""
    found = stored("comparing_inference/references")
    found = [row for row in found if row["kind"] == "ladder" and row["task"] == task]
    return np.array([row["p"][:200] for row in found if row["method"] == method])


@says(
    "comparing-inference",
    """Every prediction that is compared, and the log density, has an {term}`R-hat` within its
    bound, and at least {glue:text}`least-ess` effective draws in each run.""",
)
def test_references_have_mixed():
    for row in stored("comparing_inference/references"):
        if row["method"] == "chains":
            assert mixed(row["check"])
            assert row["kind"] == "tuning" or min(row["check"]["ess_alone"].values()) >= 4000


@says(
    "comparing-inference",
    """The two references lie {glue:text}`floor` apart, so their mean is off by about half of
    that""",
    """The mean of the SMC runs is {glue:text}`smc-apart` from the references, where chance alone
    would give {glue:text}`smc-chance`: the two ways agree.""",
)
def test_references_agree_with_each_other_and_with_smc():
    for task in range(6):
        chains, clouds = references("chains", task), references("SMC", task)
        assert np.abs(chains[0] - chains[1]).mean() < 0.0015
        off, chance = from_chains(clouds, chains.mean(axis=0))
        assert off < 3 * chance


@says("comparing-inference", "Budgets are $10^3$ to $10^6$ gradients a task, five seeds each")
def test_gradients_are_within_their_budget():
    for budget in (1000, 10_000, 100_000, 1_000_000):
        for row in cells(budget).values():
            assert len(row["tv"]) == 5 and np.mean(row["gradients"]) <= 1.3 * budget
    assert all(np.mean(row["gradients"]) <= 1.3e7 for row in longest().values())


@says("comparing-inference", "The six that are nearest at $10^5$ go on to $10^7$")
def test_the_longest_runs_are_of_the_nearest():
    at = {name: row["tv_mean"] for name, row in cells(100_000).items()}
    assert [*longest()] == sorted(at, key=at.get)[:6]


@says(
    "comparing-inference",
    """At $10^5$ gradients a task every sampler that sees all data lies within
    {glue:text}`worst-sampler` of the answer, in {term}`total variation`; every fitted
    approximation is at least {glue:text}`best-fit` away""",
)
def test_every_sampler_of_all_data_is_nearer_than_every_fit():
    samplers, fits = means(100_000, "samples"), means(100_000, "fits")
    assert len(samplers) >= 9 and len(fits) >= 9
    half = {name: row["tv_half"] for name, row in cells(100_000).items()}
    assert max(samplers[n] + half[n] for n in samplers) < min(fits[n] - half[n] for n in fits)


@says(
    "comparing-inference",
    """from $10^4$ to $10^6$ gradients each keeps at least
    {glue:text}`fit-change` of its distance.""",
    "Full-data samplers come nearer as gradients grow, but for MALA with its fixed step",
)
def test_fits_do_not_come_nearer_and_samplers_do():
    for kind, share in (("fits", 0.6), ("samples", 0.5)):
        early, late = (means(budget, kind) for budget in (10_000, 1_000_000))
        for name in early.keys() & late.keys() - {"MALA"}:
            assert (late[name] > share * early[name]) == (kind == "fits"), name


@says(
    "comparing-inference",
    """All guides but the flow even move away while their {term}`ELBO` rises. The mean-field guide
    is {glue:text}`field-early` from the reference after $10^4$ gradients, before it has converged,
    and {glue:text}`field-late` after a million; the MAP is at {glue:text}`map-late`.""",
    "converged, farther than the MAP",
)
def test_guides_but_the_flow_move_away_and_two_end_farther_than_the_map():
    for name in GUIDES[:3]:
        assert lower_end(over(1_000_000, name, name, 10_000)) > 0
    for name in GUIDES[:2]:
        assert lower_end(over(1_000_000, name, "MAP")) > 0


@says(
    "comparing-inference",
    """From $10^6$ to $10^7$ gradients little more can be seen. The six are at
    {glue:text}`longest-range`; the farthest is MILE, whose bias stays; the references have
    errors of their own""",
)
def test_ten_million_gradients_come_no_nearer_than_can_be_seen():
    assert len(longest()) == 6
    for name, row in longest().items():
        assert np.mean(row["tv"]) <= 2 * reference()["tv"]
        assert np.mean(row["tv"]) > 0.4 * cells(1_000_000)[name]["tv_mean"]
    distance = {name: np.mean(row["tv"]) for name, row in longest().items()}
    assert max(distance, key=distance.get) == "MILE"
    assert longest()["MILE"]["bias"] > 0.5 * cells(1_000_000)["MILE"]["bias"]


@says(
    "comparing-inference",
    "Of SGLD it is mostly bias, of MALA and of multi-Pathfinder mostly what restarts differ by.",
)
def test_what_the_distances_of_three_methods_consist_of():
    found = cells(100_000)
    assert found["SGLD"]["bias"] > np.mean(found["SGLD"]["within"])
    for name in ("MALA", "multi-Pathfinder"):
        assert found[name]["restarts"] > max(found[name]["bias"], np.mean(found[name]["within"]))


@says(
    "comparing-inference",
    """and at a million gradients the worst of five seeds is still {glue:text}`mala-worst` away,
    the best {glue:text}`mala-best`.""",
)
def test_mala_with_a_fixed_step_gets_stuck_in_some_seeds_and_not_in_others():
    late = cells(1_000_000)["MALA"]["tv"]
    assert max(late) > 0.01 and min(late) < 0.002


@says(
    "comparing-inference",
    """Samplers that see all data pay {glue:text}`pay-samplers` bare gradients for one of theirs,
    guides {glue:text}`pay-guides`, and SGLD {glue:text}`pay-sgld` for as many labels as a
    gradient has.""",
    "among the samplers ChEES now lies leftmost.",
)
def test_samplers_of_all_data_pay_least_for_a_gradient_and_minibatches_most():
    found = times(100_000)
    samplers = {name: found[name] for name in means(100_000, "samples")}
    guides = [found[name] for name in GUIDES]
    assert min(samplers, key=samplers.get) == "ChEES" and max(samplers.values()) < min(guides)
    assert min(found[name] for name in MINIBATCHES) > max(guides)


@says(
    "comparing-inference",
    """A gradient of the book's sampler costs {glue:text}`pay-book` bare ones at $10^5$ and
    {glue:text}`pay-book-long` at $10^6$; those of the other five cost what they did.""",
)
def test_a_gradient_of_the_books_sampler_costs_more_in_longer_runs():
    long, short = times(1_000_000), times(100_000)
    growth = {name: long[name] / short[name] for name in long}
    assert growth.pop(BOOK) > 1.5 and len(growth) == 5
    assert max(growth.values()) < 1.1 and min(growth.values()) > 0.9


@says(
    "comparing-inference",
    "and is nearer than any fit.",
    "the nearest fit from $10^5$ gradients on",
    "nearer than every converged guide",
)
def test_the_nearest_fit_is_multi_pathfinder_and_an_ensemble_that_stops_early_is_nearer():
    for budget in (100_000, 1_000_000):
        fits = means(budget, "fits")
        assert min(fits, key=fits.get) == "multi-Pathfinder"
        assert np.mean(cells(budget)["deep ensemble"]["tv"]) < min(fits.values())
    for name in GUIDES:
        assert lower_end(over(1_000_000, name, "Laplace, full")) > 0


@says(
    "comparing-inference",
    """Nearness to this posterior is not what predicts best. The MAP has an NLL of
    {glue:text}`nll-map`, the reference one of {glue:text}`nll-reference`""",
)
def test_nearness_is_not_what_predicts_best():
    assert max(cells(100_000)["MAP"]["nll"]) < reference()["nll"] - 0.02


def harder(name, method="chains"):
    """Rows of the references of a harder posterior."""
    found = stored("comparing_inference/harder")
    return [row for row in found if row["posterior"] == name and row["method"] == method]


@says(
    "comparing-inference",
    """All have mixed, and no R-hat is beyond its bound. *Runs apart* is in units of the Monte
    Carlo error of the difference; chance alone gives 0.8 on average.""",
    "two independent runs of eight chains in double precision.",
)
def test_harder_references_have_mixed_and_agree_with_each_other():
    for name in ("hierarchical", "regression", "spiral"):
        one, other = harder(name)
        for row in (one, other):
            assert mixed(row["check"]) and row["check"]["chains"] == 8
            assert min(row["check"]["ess_alone"].values()) >= 4000
        gap = np.abs(np.subtract(one["mean"], other["mean"]))
        in_errors = gap / np.hypot(one["mean_error"], other["mean_error"])
        # 0.8 by chance, and 1.1 once both runs are moved by their errors again
        assert in_errors.max() < 8 and in_errors.mean() < 1.5


@says(
    "comparing-inference",
    """The mean of the clouds is {glue:text}`clouds-apart` from the chains, where their own spread
    explains {glue:text}`clouds-chance`. That of the particles that moved on is
    {glue:text}`moved-apart` away, as near as the two runs of chains are to each other""",
)
def test_clouds_and_particles_that_moved_on_agree_with_the_chains():
    chains = np.mean([row["mean"] for row in harder("hierarchical")], axis=0)
    for kind, most in (("mean", 0.03), ("mean_after", 0.003)):
        runs = np.array([row[kind] for row in harder("hierarchical", "SMC")])
        off, chance = from_chains(runs, chains)
        assert off < 3 * chance < most


@says(
    "comparing-inference",
    "Every sampler is still nearer than every fit.",
)
def test_where_no_end_binds_every_sampler_is_still_nearer_than_every_fit():
    found = rows("comparing_inference/tuned_further")
    fits, samplers = (
        [found[name]["tv"] for name in means(100_000, kind) if name in found]
        for kind in ("fits", "samples")
    )
    assert len(samplers) >= 9 and len(fits) >= 9 and max(samplers) < min(fits)


@says(
    "comparing-inference",
    """these cannot be told from {glue:text}`best-name`: {glue:text}`like-names`. (MALA is
    among them because its runs differ so much, not because it is near.)""",
)
def test_which_samplers_could_be_the_nearest():
    found, own = rows("comparing_inference/tuned_further"), cells(100_000)["the book's sampler"]
    by_task = {
        name: np.mean(found.get(name, own)["tv_by_task"], axis=0)
        for name in means(100_000, "samples")
    }
    best = min(by_task, key=lambda name: by_task[name].mean())
    could = {name for name in by_task if lower_end(by_task[name] - by_task[best]) <= 0} - {best}
    assert {"MALA"} < could and not could & {"NUTS, Stan", "NUTS, Fisher", "tempered SMC"}
    assert by_task["MALA"].mean() > 3 * by_task[best].mean()
