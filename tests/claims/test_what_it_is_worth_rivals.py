"""Claims of the page ``what-it-is-worth`` on methods that aim at no posterior, at their best."""

import numpy as np

from tests.claims.reading import is_open, lower_end, rows, upper_end
from tests.claims.said import says

FIRST = {"1": ("worth", "reference"), "chosen": ("cold", "T 1, sd chosen")}
SETS = ("worth", "new")
MEASURES = ("nll", "joint")


def found(name, prior):
    """A stored row."""
    return rows("comparing_inference/rivals")[f"{name}, sd {prior}"]


def loss(name, prior, measure, of_set, members=None, place="near"):
    """Loss of a method on one set of tasks, by task."""
    if name == "posterior" and of_set == "worth":
        result, row = FIRST[prior]
        return np.array(rows(f"comparing_inference/{result}")[row][place][measure])
    of = found(name, prior)[of_set]
    return np.array(of[members or [k for k in of if k != "check"][-1]][place][measure])


def behind(name, prior, measure, root="chosen", sets=SETS, place="near", members=None):
    """What a method loses against a posterior, by task of some sets."""
    gaps = [
        loss(name, prior, measure, of_set, members, place)
        - loss("posterior", root, measure, of_set, place=place)
        for of_set in sets
    ]
    return np.concatenate(gaps)


@says(
    "what-it-is-worth",
    """*Without the standard deviations* forty networks are ahead of the posterior under
    N(0, 1), by {glue:text}`rival-plain-alone` on labels alone and by
    {glue:text}`rival-plain-together` on labels together; five are ahead as well.""",
    """Under N(0, 1) on every weight the posterior is beaten, on labels alone and together,
    by an ensemble of networks that stop early.""",
    "An ensemble that stops early is ahead of the posterior under N(0, 1).",
)
@says("which-method", "An ensemble whose networks stop early is ahead on both")
def test_an_ensemble_is_ahead_of_the_posterior_under_the_standard_normal_prior():
    for of_set in SETS:
        for members in ("5", "40"):
            for measure in MEASURES:
                some = {"root": "1", "sets": (of_set,), "members": members}
                assert upper_end(behind("ensemble", "1", measure, **some)) < -0.01


@says(
    "what-it-is-worth",
    """Against the posterior under the chosen ones they lose, by
    {glue:text}`rival-unknown-alone` and {glue:text}`rival-unknown-together`.""",
    "its posterior is ahead of every method that was trained without those standard deviations.",
)
def test_no_method_without_the_chosen_scales_comes_up_to_the_posterior_with_them():
    names = "posterior", "one network", "ensemble", "ensemble with prior", "MC dropout", "SWAG"
    for name in names:
        for measure in MEASURES:
            for of_set in SETS:
                assert lower_end(behind(name, "1", measure, sets=(of_set,))) > 0, name


@says(
    "what-it-is-worth",
    """Under one wider standard deviation for all weights, 2 or 3 as in {numref}`fig-cold`,
    a posterior is still behind them on labels alone, and no longer on labels together.""",
)
def test_a_wider_single_scale_mends_labels_together_alone():
    for prior in ("2", "3"):
        row = rows("comparing_inference/cold")[f"T 1, sd {prior}"]
        gap = {m: row["near"][m] - loss("ensemble", "1", m, "worth") for m in MEASURES}
        assert row["check"]["mixed"] and lower_end(gap["nll"]) > 0 > lower_end(gap["joint"])


@says(
    "what-it-is-worth",
    """*With them* forty networks are not shown to differ from that posterior on labels alone
    ({glue:text}`rival-known-alone` behind), and they are behind on labels together. Twice as far
    from the centre they are behind on both, by {glue:text}`rival-far-alone` and
    {glue:text}`rival-far-together`.""",
    """An ensemble that has them as well is not shown to differ from it on labels alone, and
    is behind on labels together, by {glue:text}`rival-known-together` nats a label.""",
    """Where both have standard deviations chosen by layer no difference is shown on labels
    alone, and the ensemble is behind by {glue:text}`rival-known-together` on labels
    together.""",
    """no difference shown on labels alone near the data, at a fraction of the gradients;
    behind on labels together, and farther out""",
)
@says(
    "which-method",
    """On the moons, with fifty labels, an ensemble of forty was then not shown to differ
    from the posterior on labels alone, and a little behind on labels together""",
)
def test_with_the_chosen_scales_an_ensemble_is_level_alone_and_behind_together():
    assert is_open(behind("ensemble", "chosen", "nll"))
    assert behind("ensemble", "chosen", "nll").mean() < 0.005
    for of_set in SETS:
        assert lower_end(behind("ensemble", "chosen", "joint", sets=(of_set,))) > 0
    for measure in MEASURES:
        assert lower_end(behind("ensemble", "chosen", measure, place="far")) > 0


@says(
    "what-it-is-worth",
    """To average is needed in any case: one such network is behind by
    {glue:text}`rival-one-alone` on labels alone.""",
)
def test_one_network_is_behind_even_with_the_chosen_scales():
    assert lower_end(behind("one network", "chosen", "nll")) > 0.02


@says(
    "what-it-is-worth",
    """With the chosen standard deviations that is worse near the data than to stop early, by
    {glue:text}`rival-penalty-together` on labels together.""",
)
def test_a_penalty_is_worse_than_to_stop_early():
    penalised = behind("ensemble with prior", "chosen", "joint")
    assert lower_end(penalised - behind("ensemble", "chosen", "joint")) > 0


@says(
    "what-it-is-worth",
    """The folds drive the share of units that it drops to less than one in a hundred, so
    what is left is one penalised network""",
)
def test_folds_leave_nothing_to_drop():
    assert max(found("MC dropout", prior)["setting"]["share"] for prior in ("1", "chosen")) < 0.01


@says(
    "what-it-is-worth",
    """Under the chosen standard deviations folds prefer $T = 1$, which is Bayes' rule.
    Under N(0, 1) they go on cooling to $T = 1/64$, where chains have not mixed""",
)
def test_folds_cool_the_standard_normal_prior_alone():
    warm, cold = found("tempered", "chosen"), found("tempered", "1")
    assert warm["setting"]["temperature"] == 1 and cold["setting"]["temperature"] == 1 / 64
    for of_set in SETS:
        assert warm[of_set]["check"]["mixed"] and not cold[of_set]["check"]["mixed"]


@says(
    "what-it-is-worth",
    "The ensemble is the cheaper of the two.",
)
def test_an_ensemble_takes_a_fraction_of_the_gradients():
    check = found("posterior", "chosen")["new"]["check"]
    paid = check["chains"] * check["draws"] * check["integration_steps"]
    assert check["mixed"] and 40 * found("ensemble", "chosen")["setting"]["steps"] < paid / 4
