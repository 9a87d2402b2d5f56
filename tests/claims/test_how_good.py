"""Claims of the page ``how-good`` on stored rows."""

import numpy as np

from tests.claims.reading import is_open, lower_end, mixed, rows, stored
from tests.claims.said import says
from tests.claims.usual_tables import MAIN, MATERN, arms, is_level


def near(prior, measure, place="near"):
    """Nats a label above the best possible of forty networks that stop early, and of the posterior,
    on eighty tasks.
    """
    rival, cold = rows("comparing_inference/rivals"), rows("comparing_inference/cold")
    forty = [
        rival[f"ensemble, sd {prior}"][part]["40"][place][measure] for part in ("worth", "new")
    ]
    posterior = [
        cold[f"T 1, sd {prior}"][place][measure],
        rival[f"posterior, sd {prior}"]["new"]["all"][place][measure],
    ]
    return np.concatenate(forty), np.concatenate(posterior)


@says(
    "how-good",
    """over eighty tasks forty networks are behind by {glue:text}`eighty-nll` nats on labels alone
    (95 % intervals, here and below), so no difference is shown. On labels together they are
    behind by {glue:text}`eighty-joint`""",
    """Far out, on labels alone, they are behind by {glue:text}`eighty-far`. The eight tasks here
    are unlucky for forty, near and far.""",
    "Forty are behind it by {glue:text}`eighty-risk` points of that half",
    "over eighty tasks that is shown ({ref}`worth-rivals`)",
)
def test_forty_networks_are_level_alone_and_behind_together():
    far = np.subtract(*near("chosen", "nll", "far"))
    assert 0 < far.mean() < 0.5 * far[:8].mean()
    close = np.subtract(*near("chosen", "nll"))
    assert is_open(close) and close.mean() < 0.5 * close[:8].mean()
    assert lower_end(np.subtract(*near("chosen", "joint"))) > 0
    assert np.subtract(*near("chosen", "risk")).mean() > 0
    assert lower_end(near("1", "nll")[0] - near("chosen", "nll")[0]) > 0
    assert mixed(rows("comparing_inference/cold")["T 1, sd chosen"]["check"])
    assert mixed(rows("comparing_inference/rivals")["posterior, sd chosen"]["new"]["check"])


def spiral(name):
    """The rows of a method on the spiral, one a training set."""
    found = [
        row
        for part in ("spiral", "spiral_references", "spiral_rivals")
        for row in stored(f"svi/{part}")
        if row["name"] == name
    ]
    assert len(found) == 5
    return found


def bits(name, where):
    """Doubts near the data or far from them, by training set."""
    return np.array([row[f"entropy_{where}"] for row in spiral(name)])


@says(
    "how-good",
    "sampled under N(0, 1) until its chains had mixed, on five training sets.",
    "Only the ten networks doubt more far out than near the points.",
    "Under N(0, 1) a posterior doubted less far out than near",
)
def test_far_out_all_but_the_ensemble_doubt_less_than_near_the_data():
    assert all(row["check"]["mixed"] for row in spiral("NUTS, prior sd 1"))
    for name in ("one network, temperature by folds", "SVI, prior sd 1", "NUTS, prior sd 1"):
        assert lower_end(bits(name, "near") - bits(name, "far")) > 0
    ten = "ensemble of 10, to the end"
    assert lower_end(bits(ten, "far") - bits(ten, "near")) > 0


@says(
    "how-good",
    """they gain {glue:text}`cold-alone` nats, and labels together lose
    {glue:text}`cold-together`.""",
    """The chosen scales gain {glue:text}`prior-alone` on labels alone and
    {glue:text}`prior-together` on labels together.""",
    "Under them no gain of a power is shown",
)
def test_a_power_mends_one_prior_and_a_better_prior_more():
    cell = rows("comparing_inference/cold")

    def loss(name, measure):
        assert cell[name]["check"]["mixed"]
        return np.array(cell[name]["near"][measure])

    assert lower_end(loss("T 1, sd 1", "nll") - loss("T 0.2, sd 1", "nll")) > 0
    assert lower_end(loss("T 0.2, sd 1", "joint") - loss("T 1, sd 1", "joint")) > 0
    for measure in ("nll", "joint"):
        assert lower_end(loss("T 1, sd 1", measure) - loss("T 1, sd chosen", measure)) > 0.05
        gain = loss("T 1, sd chosen", measure) - loss("T 0.5, sd chosen", measure)
        assert lower_end(gain) < 0.001


@says(
    "how-good",
    """Under a wide one the posterior doubts more far out than near: only a hint, since those chains
    do not pass our rule""",
    "N(0, 1) is too narrow for this spiral, as its share of right answers says",
)
def test_under_a_wide_prior_the_doubts_far_out_are_the_larger_ones():
    wide = "NUTS, prior sd 10"
    assert lower_end(bits(wide, "far") - bits(wide, "near")) > 0.5
    assert not any(mixed(row["check"]) for row in spiral(wide))
    right = [row["scores"]["accuracy %"] for row in spiral("NUTS, prior sd 1")]
    assert max(right) < 95 < min(row["scores"]["accuracy %"] for row in spiral(wide))


@says(
    "how-good",
    """on three of these, boosted trees or a Gaussian process (a posterior over curves that needs no
    network) are level with sampled networks by root mean
    square error""",
)
def test_on_yacht_and_concrete_something_that_is_no_network_is_level_by_its_mean():
    for table, rival in (("yacht", MATERN), ("concrete", "trees")):
        assert is_level(np.subtract(*(arms(table)[name]["rmse"] for name in (rival, MAIN))))


# on airfoil the interval ends near 0
@says("how-good", "are level with sampled networks by root mean square error", falls=0.6)
def test_on_airfoil_a_process_is_level_by_its_mean():
    assert is_level(np.subtract(*(arms("airfoil")[name]["rmse"] for name in (MATERN, MAIN))))
