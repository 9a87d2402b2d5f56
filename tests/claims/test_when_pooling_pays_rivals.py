"""Claims of the page ``when-pooling-pays`` of the rivals of the hierarchical network."""

import numpy as np

from tests.claims.reading import THRESHOLD, lower_end, rows, upper_end
from tests.claims.said import says

TRAINED, SAMPLED, LAPLACE = "trained heads", "heads by MCMC", "heads by Laplace"
HEAD = "{} features, {}".format
ODD, ODD_A_TASK = "odd Gaussian process, one scale", "odd Gaussian process a task"
NOT_ODD, ANGLE, CHOSEN = "Gaussian process, one scale", "latent angle", "chosen over tasks"


def rivals():
    """Rows of the rivals, on the eighteen tasks and on new ones."""
    return rows("what_the_gain_is_made_of/rivals")


def over(name):
    """NLL of a rival less that of the hierarchical network, on the eighteen tasks."""
    own = rows("what_the_gain_is_made_of/arms")["shared, N+(0, 1)"]["nll"][:8]
    return np.subtract(rivals()[name]["nll"], own)


def over_new(name):
    """The same on new tasks, for each of which the hierarchical network was fitted again."""
    own = rivals()["shared, N+(0, 1): new tasks, one at a time"]["nll"]
    return np.subtract(rivals()[f"{name}: new tasks"]["nll"], own)


def counts(differences):
    """Whether differences are shown to be above the threshold, below which they count as none."""
    return lower_end(differences) > THRESHOLD


@says(
    "when-pooling-pays",
    """Thirty-two features that all tasks share, with heads as trained, differ from the
    hierarchical network by {glue:text}`rival-trained`; an odd Gaussian process, whose tasks
    share an amplitude and a length scale and nothing else, by {glue:text}`rival-odd`. No
    difference that counts is shown.""",
    """this book's hierarchical network is not shown to beat a multi-task network with trained
    heads, nor a process whose tasks share two numbers.**""",
)
@says("which-method", "with 32 of them these were level on the moons")
def test_trained_heads_and_an_odd_process_are_level_with_the_hierarchical_network():
    for name in (HEAD(32, TRAINED), ODD):
        assert not counts(over(name)) and not counts(-over(name))
        assert lower_end(over(name)) > -0.012 and upper_end(over(name)) < 0.012


@says(
    "when-pooling-pays",
    """Five features, as many as it has, are not enough for the rival:
    {glue:text}`rival-trained-5`.""",
    "Of the others both lie right of it",
)
def test_five_features_and_other_processes_are_behind():
    for name in (HEAD(5, TRAINED), ODD_A_TASK, NOT_ODD):
        assert counts(over(name)) and counts(over_new(name)), name


@says(
    "when-pooling-pays",
    """no gain of Bayesian heads over trained ones is shown: by MCMC they change the NLL by
    {glue:text}`rivals-heads` with 32 features and by {glue:text}`rivals-heads-5` with five.
    With 32 that of Laplace's method less MCMC's is {glue:text}`rivals-heads-laplace`.""",
)
def test_no_gain_of_bayesian_heads_is_shown():
    for size in (5, 32):
        change = over(HEAD(size, SAMPLED)) - over(HEAD(size, TRAINED))
        assert not counts(-change)
    assert lower_end(over(HEAD(32, LAPLACE)) - over(HEAD(32, SAMPLED))) > -0.001


@says(
    "when-pooling-pays",
    """For the process, the symmetry counts and so does sharing the scales: without the first its
    NLL is higher by {glue:text}`rivals-oddness`, with scales of each task's own by
    {glue:text}`rivals-one-scale`.""",
)
def test_symmetry_and_shared_scales_help_the_process():
    for worse in (NOT_ODD, ODD_A_TASK):
        assert counts(over(worse) - over(ODD))


@says(
    "when-pooling-pays",
    """*The latent angle* is {glue:text}`rival-angle`, {glue:text}`rival-share-angle` % of what
    separates the hierarchical network from the {term}`Bayes optimum`""",
    """The latent angle, which has one number to learn, is better by
    {glue:text}`rival-new-angle`.""",
    "The latent angle is ahead of it on both.",
)
def test_the_latent_angle_is_ahead_on_the_tasks_and_on_new_ones():
    assert counts(-over(ANGLE)) and counts(-over_new(ANGLE))


@says(
    "when-pooling-pays",
    """*New tasks.* Here, too, no difference that counts from 32 features with trained heads is
    shown""",
    """Against the odd process, {glue:text}`ahead-odd`, and separate networks under scales chosen
    on the eighteen, {glue:text}`ahead-chosen`, its lead is open.""",
)
def test_on_new_tasks_the_lead_over_three_rivals_is_open():
    for name in (HEAD(32, TRAINED), ODD, CHOSEN):
        assert not counts(over_new(name)) and not counts(-over_new(name)), name


@says(
    "when-pooling-pays",
    "The features' heads by Laplace's method are behind by {glue:text}`ahead-laplace`.",
)
def test_on_new_tasks_heads_by_laplace_are_behind():
    assert lower_end(over_new(HEAD(32, LAPLACE))) > THRESHOLD / 2


@says(
    "when-pooling-pays",
    """Where the six new tasks join the eighteen in one fit, its NLL is lower by
    {glue:text}`rival-together`: more tasks seem to help.""",
)
def test_six_new_tasks_in_one_fit_help_each_other():
    # the interval's upper end is below 0 by less than its Monte Carlo error
    together = over_new("shared, N+(0, 1)")
    assert together.mean() < 0 and not counts(together)


@says(
    "when-pooling-pays",
    """On task 1 the network loses {glue:text}`forgot` points of accuracy on average over the later
    stages, down to guessing.""",
)
def test_fine_tuning_forgets():
    first = np.array(rivals()["fine-tuned in turn"]["more"]["first_task_accuracy"])
    assert lower_end(first[:, 0] - first[:, 1:].mean(axis=1)) > 5
    assert lower_end(first[:, 1:].mean(axis=1)) < 50 + 10
