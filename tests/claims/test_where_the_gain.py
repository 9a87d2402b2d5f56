"""Claims of the page ``where-the-gain`` on stored rows."""

from helpers import metrics

import numpy as np

from experiments.engine import headlines
from tests.claims.centres import saved
from tests.claims.reading import THRESHOLD, arms, is_open, lower_end, rows, stored, upper_end
from tests.claims.said import says

PLAIN, CHOSEN, SHARED = "N(0, 1)", "chosen over tasks", "shared, N+(0, 1)"


def nll(name):
    """NLL of a stair on the first eight data sets."""
    if name in (PLAIN, CHOSEN, SHARED):
        return np.array(arms()[name]["nll"][:8])
    if name in ("latent angle", "Bayes optimum"):
        return np.array(rows("what_the_gain_is_made_of/rivals")[name]["nll"])
    return np.array(rows("what_the_gain_is_made_of/centres")[f"rotated, {name}, shift"]["nll"][:8])


@says(
    "where-the-gain",
    """Three numbers climb most of the stairs; to share weights adds so little that eight data sets
    do not show it.""",
    "The best of the networks still leaves more than a third of the way",
    "*Three scales* are the first stair and the highest.",
)
def test_the_first_stair_is_the_highest():
    first = nll(PLAIN) - nll(CHOSEN)
    assert is_open(nll(CHOSEN) - nll(SHARED))
    every = nll(PLAIN) - nll("Bayes optimum")
    assert first.mean() > 0.5 * every.mean()
    best = nll(PLAIN) - nll("shared")
    assert 0.5 * every.mean() < best.mean() < 0.65 * every.mean()
    assert lower_end(nll("shared") - nll("latent angle")) > 0
    assert lower_end(nll("latent angle") - nll("Bayes optimum")) > 0


@says(
    "where-the-gain",
    """here they left the gain of sharing open, and forty-eight more were drawn.""",
    """there is a gain, and a threshold of 0.005, fixed before the first result, lies within its
    interval.""",
    "Twelve tell in seven cases of ten, and the first twelve were of the others",
)
def test_twelve_leave_sharing_open_and_sixty_show_a_small_gain():
    every = headlines.paired_differences(unmixed=True)
    assert len(every) == 60 and is_open(every[:12])
    mean, half = metrics.interval(headlines.paired_differences())
    assert 0 < mean - half < THRESHOLD < mean + half < 0.02
    random = np.random.default_rng(1)
    of_twelve = random.choice(every, (4000, 12))
    assert 0.5 < np.mean([lower_end(one) > 0 for one in of_twelve[:500]]) < 0.9


@says(
    "where-the-gain",
    """a task that chooses for itself by its fifty labels gains {glue:text}`own-choice`, where the
    common choice gains {glue:text}`common-choice`.""",
)
def test_a_common_choice_is_better_than_one_of_each_task():
    assert lower_end(np.subtract(arms()["chosen per task"]["nll"], arms()[CHOSEN]["nll"])) > 0.01


@says(
    "where-the-gain",
    """A shift of the inputs, learnt with the weights, brings chosen scales
    {glue:text}`centre-chosen` and shared weights {glue:text}`centre-shared`""",
    "It gains {glue:text}`angle-shared` over shared weights.",
)
def test_a_learnt_centre_and_an_angle_gain():
    assert lower_end(saved("chosen", "shift")) > 0.003 < lower_end(saved("shared", "shift"))
    assert lower_end(nll(SHARED) - nll("latent angle")) > 0.02


def alone(layer, prior):
    """NLL with one layer alone free, less that of the sources' model."""
    found = rows("what_the_gain_is_made_of/attribution")
    full = found["every layer, means' scale 1, HalfNormal(1)"]["nll"]
    of = np.array(found[f"{layer} layer alone, {prior}"]["nll"])
    return of - full[: len(of)]


@says(
    "where-the-gain",
    "With N(0, 1) on what is shared the output layer is the special one.",
    "With learnt scales the input layer alone is no worse.",
    """there it gains {glue:text}`later-chosen` over chosen scales and {glue:text}`later-shared`
    over shared weights""",
)
def test_the_layer_that_differs_depends_on_the_prior_of_what_is_shared():
    one, learnt = "means' scale 1, HalfNormal(1)", "means' scale learnt, HalfNormal(5)"
    assert lower_end(alone("input", one) - alone("output", one)) > THRESHOLD
    assert alone("hidden", one).mean() > alone("output", one).mean() + THRESHOLD
    assert is_open(alone("input", learnt) - alone("output", learnt))
    assert upper_end(alone("input", learnt)) < 0
    for name in (CHOSEN, SHARED):
        assert lower_end(headlines.less_input_layer(name)) > THRESHOLD


@says(
    "where-the-gain",
    "Over N(0, 1) sharing gains in most settings and is behind in none",
    "Over chosen scales it loses with five tasks",
    "It gains with fifty tasks, and with two tasks of five labels",
)
def test_where_sharing_pays():
    found = {
        (row["more"]["setting"], row["more"]["arm"]): np.array(row["nll"])
        for row in stored("what_the_gain_is_made_of/pooling")
    }
    pooled = "hierarchical, N+(0, 1)"

    def gain(setting, over):
        return found[setting, over] - found[setting, pooled]

    others = ("2, 5", "2, 50", "5, 50", "18, 5", "18, 15", "18, 200", "50, 50")
    over_plain = [gain(setting, PLAIN) for setting in others]
    assert min(map(np.mean, over_plain)) > 0
    assert sum(lower_end(values) > 0 for values in over_plain) >= 4
    assert lower_end(np.array(arms()[PLAIN]["nll"]) - arms()[SHARED]["nll"]) > 0
    for setting, sign in (("5, 50", -1), ("50, 50", 1), ("2, 5", 1)):
        assert lower_end(sign * gain(setting, "scales chosen")) > 0
    for setting in ("2, 50", "18, 5", "18, 15", "18, 200"):
        assert is_open(gain(setting, "scales chosen"))


@says("where-the-gain", "An odd one does little harm")
def test_an_odd_task_among_eighteen_does_little_harm():
    found = rows("what_the_gain_is_made_of/pooling")
    of = (
        np.array(found[f"{setting}, hierarchical, N+(0, 1)"]["more"]["task_nll"])[:, :-1]
        for setting in ("alien", "18, 50")
    )
    change = np.subtract(*of).mean(axis=1)
    assert is_open(change) and upper_end(change) < 0.02


@says(
    "where-the-gain",
    """Nothing here is shown to be worse than the hierarchical network but the process that does not
    know the moons' symmetry""",
    """Who knows that tasks are turned wins; between it and a trained network with heads, or a
    process that knows the symmetry, no difference that counts is shown.""",
)
def test_rivals_are_level_but_for_the_one_that_knows_and_the_one_that_knows_less():
    def behind(name):
        return rows("what_the_gain_is_made_of/rivals")[name]["nll"] - nll(SHARED)

    for name in ("32 features, trained heads", "odd Gaussian process, one scale"):
        assert max(lower_end(behind(name)), lower_end(-behind(name))) < THRESHOLD
    assert upper_end(behind("latent angle")) < 0
    assert lower_end(behind("Gaussian process, one scale")) > 0


@says(
    "where-the-gain",
    """of sixteen that started near zero {glue:text}`ends-hidden` were there at the end of a short
    run.""",
    """for eighteen tasks next to all of it is where the output layer differs""",
)
def test_chains_end_in_two_places_and_the_mass_is_in_one():
    near_zero = next(r for r in stored("hierarchical_bnn/chain_ends") if r["kind"] == "starts")
    widest = [int(np.argmax(chain)) for chain in near_zero["sd_by_chain"]]
    assert len(widest) == 16 and {at for at in widest if at != 2} == {1}
    for row in stored("hierarchical_bnn/masses"):
        if row["num_tasks"] == 18:
            assert np.exp(row["log_share"][2][-1]) > 0.999
