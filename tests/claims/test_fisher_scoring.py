"""Claims of the page ``fisher-scoring``, and those that ``sgmcmc`` shares with it."""

from helpers import common, metrics

import numpy as np

from tests.claims.reading import lower_end, rows
from tests.claims.said import says

CENTRED = ["SGLD, control variates", "SGLD, control variates, from the mode"]


def family():
    """Rows of the minibatch samplers, of NUTS and of the guides, by name."""
    return rows("sgmcmc/step_sizes")


def settings():
    """The rule, its limits, and the samplers."""
    return common.read_result("sgmcmc/step_sizes")["settings"]


def samplers():
    """The rows of the minibatch samplers."""
    return {name: family()[name] for name in settings()["step_sizes"]}


def ran():
    """The rows of those that chose a step in two seeds or more."""
    return {name: row for name, row in samplers().items() if len(row["seeds_with_a_run"]) > 1}


def distance(name):
    """Distance to NUTS by step size and seed, [step size, seed]."""
    return np.array([at["tv"] for at in family()[name]["curves"]["0"]])


@says(
    "fisher-scoring",
    "The reference is NUTS with eight chains; {numref}`fig-family` shows distances to it.",
    "Its two halves differ by {glue:text}`tv-floor`.",
)
def test_the_reference_has_mixed_and_its_halves_are_near():
    assert family()["NUTS, long"]["mixed"] and family()["NUTS, long"]["tv"] < 0.0005


@says(
    "fisher-scoring",
    """**Of averages, nearly.** Where two seeds or more chose, mean predictions lie
    {glue:text}`tv-least` to {glue:text}`tv-most` from those of NUTS. The interval's upper end
    keeps the limit, {glue:text}`limit`, in {glue:text}`num-near` samplers:
    {glue:text}`names-near`.""",
)
def test_averages_of_minibatch_samplers_are_nearly_those_of_nuts():
    limit = settings()["limit"]
    assert max(np.mean(row["tv"]) for row in ran().values()) < limit
    ends = {name: np.sum(metrics.interval(row["tv"])) for name, row in ran().items()}
    near = {name for name in ran() if samplers()[name]["near"]}
    assert near == {"SGLD", "SGFS, proportional"} and max(ends[name] for name in near) < limit


@says(
    "fisher-scoring",
    """The others' intervals reach beyond, or a seed has no step: SGHMC found one in
    {glue:text}`momentum-chosen` of {glue:text}`num-seeds` seeds, SGNHT and cyclical SGLD in
    {glue:text}`others-chosen`, SGLD with control variates in {glue:text}`control-chosen`""",
)
@says("sgmcmc", "SGHMC found a step in one seed alone.")
def test_four_samplers_choose_a_step_in_every_seed_and_sghmc_hardly():
    found = {name: len(row["seeds_with_a_run"]) for name, row in samplers().items()}
    always = {name for name, count in found.items() if count == settings()["num_seeds"]}
    assert always == {"SGFS, proportional", "SGFS, identity", "preconditioned SGLD", "SGLD"}
    assert found["SGHMC"] == 1


@says(
    "fisher-scoring",
    """**Of the posterior it is not.** Predictions vary too much from draw to draw in every run
    that the rule chose: the least spread of any seed is {glue:text}`wide-any` times the
    reference's""",
    "The limit was {glue:text}`share` %.",
)
@says(
    "sgmcmc",
    """Predictions vary too much from draw to draw in every run; the least spread of any seed is
    {glue:text}`wide-any` times the right one.""",
)
def test_predictions_vary_too_much_from_draw_to_draw_in_every_run():
    least = 1 + settings()["spread"]
    assert all(
        min(row["spread_ratio"]) > least for row in samplers().values() if "spread_ratio" in row
    )
    assert not any(row["keeps_spread"] or row["samples"] for row in samplers().values())


@says(
    "fisher-scoring",
    """preconditioned SGLD has mixed in every seed, SGFS with $B = 1$ in {glue:text}`fisher-mixed`,
    on a distribution that is too wide.""",
)
@says("sgmcmc", "preconditioned SGLD has mixed in every seed, on a distribution that is too wide.")
def test_chains_mix_on_a_distribution_that_is_too_wide():
    assert all(family()["preconditioned SGLD"]["mixed"])
    assert sum(family()["SGFS, identity"]["mixed"]) == 4


@says(
    "fisher-scoring",
    """**At equal gradients NUTS is nearer.** Its distance is {glue:text}`nuts-tv`, which chance
    explains, and its spread {glue:text}`nuts-spread`. Seed by seed SGLD is farther by
    {glue:text}`langevin-over` and SGFS with $B = 1$ by {glue:text}`fisher-over`. Its chains
    have not mixed at that length""",
)
@says(
    "sgmcmc",
    """**Having read as many points, NUTS is nearer**, with about the right spread, though so short
    a run has not mixed by this book's rule.""",
    "Even in runs too short to mix it was nearer at equal cost",
)
def test_nuts_at_as_many_gradients_is_nearer():
    equal = family()["NUTS"]
    assert equal["near"] and equal["keeps_spread"] and not any(equal["mixed"])
    assert max(equal["gradients"]) < 1.3 * family()["SGLD"]["gradients"][0]
    assert np.mean(equal["tv"]) < 2 * np.mean(equal["tv_chance"])
    for name in ("SGLD", "SGFS, identity"):
        assert lower_end(np.subtract(family()[name]["tv"], equal["tv"])) > 0


@says(
    "fisher-scoring",
    """**Control variates** lower the error of large steps. At the three largest SGLD is
    {glue:text}`control-plain` from NUTS, and with control variates, from the same starts,
    {glue:text}`control-less` less. At the steps that SGLD chooses no difference is shown.""",
)
@says(
    "sgmcmc",
    """Control variates help at long steps, and at the steps that SGLD chooses no difference is
    shown.""",
)
def test_control_variates_lower_the_error_of_large_steps_alone():
    plain, centred = distance("SGLD"), distance(CENTRED[0])
    mean, half = metrics.interval((plain - centred)[3:].mean(axis=0))
    assert half < mean < 0.25 * plain[3:].mean()
    for step in (1, 2):  # the steps that are chosen, and half of them
        mean, half = metrics.interval((plain - centred)[step])
        assert abs(mean) < half


@says(
    "fisher-scoring",
    """**Friction and `alpha` decide.** SGNHT with an `alpha` of 100 hardly moves, and SGHMC with
    BlackJAX's friction of 0.01 is far off at a step of 0.008, where a friction of 100 is near.""",
)
@says(
    "sgmcmc",
    """with BlackJAX's own friction its averages end far from NUTS, with a far larger one they end
    near it.""",
)
def test_friction_and_alpha_decide():
    curves = family()["SGHMC"]["curves"]
    little, much = (
        next(at["tv_together"] for at in curves[friction] if at["step_size"] == 0.008)
        for friction in ("0.01", "100")
    )
    assert little > 0.03 > settings()["limit"] > much
    slow = family()["SGNHT"]["curves"]["100"]
    assert all(np.mean(at["ess_of_predictions"]) < 15 for at in slow if at["finite"])
