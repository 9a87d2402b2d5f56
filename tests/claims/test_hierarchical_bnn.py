"""Claims of the page ``hierarchical-bnn``."""

from helpers import metrics

import numpy as np

from experiments.engine import headlines
from tests.claims.reading import lower_end, mixed, rows, stored
from tests.claims.said import says


def prior_learnt():
    """The stored run of the network whose every layer has a group level."""
    return rows("hierarchical_bnn/long_runs")["every layer"]


def alone():
    """The stored separate networks under N(0, 1)."""
    (found,) = (row for row in stored("flat_bnn/prior_scale") if row["scales"] == [1, 1, 1])
    return found


@says(
    "hierarchical-bnn",
    """The learnt prior has a lower NLL than N(0, 1) in every task, by {glue:text}`gain`
    on average""",
)
def test_sharing_lowers_the_nll_of_networks_alone_in_every_task():
    assert mixed(prior_learnt()["check"]) and alone()["mixed"]
    gain = np.subtract(alone()["test_nll_by_task"], prior_learnt()["task_nll"])
    assert gain.min() > 0.02 and lower_end(gain) > 0.05


@says(
    "hierarchical-bnn",
    """separate networks with chosen scales differ from the hierarchical ones by
    {glue:text}`tie`.""",
)
def test_the_rival_is_as_good():
    assert headlines.chosen_network()["mixed"]
    mean, half = metrics.interval(headlines.chosen_less_hierarchical())
    assert abs(mean) < half < 0.02
    assert abs(mean) < 0.05 * np.mean(
        np.subtract(alone()["test_nll_by_task"], prior_learnt()["task_nll"])
    )


@says(
    "hierarchical-bnn",
    """an answer that suits one angle is wrong at another, so it says one half nearly
    everywhere.""",
)
def test_one_network_for_all_tasks_says_one_half():
    one = rows("flat_bnn/baselines")["one network for all tasks"]
    assert mixed(one["check"]) and np.log(2) - 0.03 < one["nll"] < np.log(2)
    assert np.abs(np.mean(one["surfaces"], axis=0) - 0.5).mean() < 0.1


@says(
    "hierarchical-bnn",
    "Centred, the network's chains do not meet, as the upper trace shows",
    """Those above crawl on levels of their own, those below overlap.""",
)
def test_chains_of_the_centred_form_stay_on_levels_of_their_own():
    paths = {
        row["kind"]: np.log(np.array(row["path_of_sd"])[..., 1])
        for row in stored("hierarchical_bnn/chain_ends")
        if row["kind"].endswith("centred")
    }
    apart = {
        kind: path.mean(axis=1).std() / path.std(axis=1).mean() for kind, path in paths.items()
    }
    assert apart["centred"] > 1 and apart["non-centred"] < 0.2
