"""Claims of the page ``priors-judged``, some of which ``choosing-the-prior`` makes, too."""

from helpers import metrics

import numpy as np
from scipy import stats

from tests.claims.priors import LABELS, evidence, folds, grid, losses, on_dial, picked
from tests.claims.reading import lower_end
from tests.claims.said import says


@says(
    "priors-judged",
    "The best output scale lies inside the grid, and so does the best hidden scale.",
    "The best input scale is the least of the grid",
)
def test_of_the_best_scales_only_that_of_the_input_layer_lies_at_an_end_of_the_grid():
    values = [sorted({row["scales"][layer] for row in grid()}) for layer in range(3)]
    best = grid()[0]["scales"]
    assert best[0] == values[0][0]
    assert values[1][0] < best[1] < values[1][-1] and values[2][0] < best[2] < values[2][-1]


@says(
    "priors-judged",
    """and the best is ahead of the next by {glue:text}`ridge-next` (mean over tasks and 95 %
    interval).""",
    "that decides next to nothing",
)
def test_the_best_triple_is_not_shown_to_be_ahead_of_the_next():
    best, following, *_ = (row["held_out_nll_by_task"] for row in grid())
    mean, half = metrics.interval(np.subtract(following, best))
    assert mean < half


@says(
    "priors-judged",
    """A triple's log evidence has a {term}`standard error` of {glue:text}`evidence-error` nats at
    most""",
    "agrees within {glue:text}`evidence-bridged` standard errors of the difference.",
)
def test_the_evidence_is_known_to_two_nats_and_two_methods_agree():
    found, bridged = evidence()
    assert max(max(row["all_error"]) for row in found) < 2
    at = [found[0]["triples"].index(one) for one in bridged["triples"]]
    for part in ("first", "later"):
        here, error = (np.array(found[0][name])[at] for name in (part, f"{part}_error"))
        assert (np.abs(here - bridged[part]) < 6 * np.hypot(error, bridged[f"{part}_error"])).all()


@says(
    "choosing-the-prior",
    """On the moons the first forecasts favour narrow priors, the later ones rank priors much as the
    folds do""",
)
@says(
    "priors-judged",
    """The later labels rank the priors much as cross-validation does: the rank correlation over
    the grid is {glue:text}`alike-later`.""",
    """The evidence does so less, {glue:text}`alike-all`; the difference is
    {glue:text}`alike-closer`""",
    "What pulls it away is the first labels, {glue:text}`alike-first`.",
)
def test_later_labels_rank_scales_as_folds_do_and_the_evidence_less_so():
    _, loss = losses()
    alike = {
        name: np.array(
            [
                stats.spearmanr(*pair).statistic
                for pair in zip(loss[name], loss["folds"], strict=True)
            ]
        )
        for name in LABELS
    }
    assert lower_end(alike["later"]) > 0.6
    assert lower_end(alike["later"] - alike["all"]) > 0.1
    assert lower_end(alike["all"] - alike["first"]) > 0.1


@says(
    "priors-judged",
    "They charge for width.",
    """The first 25 labels of all tasks then lose {glue:text}`charged-first` nats of log density,
    the later 25 gain {glue:text}`charged-later`. The evidence falls by
    {glue:text}`charged-all`. Cross-validation, summed over the same labels, gains
    {glue:text}`charged-folds`.""",
)
def test_first_labels_charge_for_width_more_than_the_later_ones_give_back():
    triples, loss = losses()
    pairs = [[0.125, 2.0], [0.25, 1.0], [0.5, 0.5]]
    columns = [[triples.index([*pair, scale]) for pair in pairs] for scale in (12.0, 48.0)]
    lost = {
        name: np.subtract(*(values[:, at].mean(axis=1) for at in columns[::-1]))
        for name, values in loss.items()
    }
    assert lower_end(lost["first"]) > 0 and lower_end(lost["all"]) > 0
    assert lower_end(-lost["later"]) > 0 and lower_end(-lost["folds"]) > 0


@says(
    "choosing-the-prior",
    """The sum picks an output scale of {glue:text}`evidence-outputs` on each of
    {glue:text}`evidence-count` data sets, where the folds pick {glue:text}`folds-outputs`.""",
)
@says(
    "priors-judged",
    """On all data sets its pick has an output scale of {glue:text}`evidence-outputs`, the least of
    this grid, where the folds pick {glue:text}`folds-outputs`.""",
)
def test_the_evidence_picks_the_least_output_scale_and_the_folds_wider_ones():
    scales, _ = picked()
    assert min(triple[2] for triple in folds()["triples"]) == 12
    assert (scales["all"][:, 2] == 12).all() and (scales["folds"][:, 2] >= 24).all()


@says("choosing-the-prior", "That its picks predict worse is not shown")
@says(
    "priors-judged",
    """That the evidence's picks do worse on fresh points is not shown by
    {glue:text}`evidence-count` data sets""",
    """but on one of them the pick is the narrowest triple of the grid, with a fresh NLL of
    {glue:text}`evidence-worst`, against {glue:text}`folds-there` by the folds.""",
)
def test_the_evidences_picks_are_not_shown_to_be_worse_and_one_is_much_worse():
    scales, nll = picked()
    worse = nll["all"] - nll["folds"]
    mean, half = metrics.interval(worse)
    assert abs(mean) < half
    assert scales["all"][worse.argmax()].tolist() == [0.125, 0.5, 12.0] and worse.max() > 0.05


@says(
    "priors-judged",
    """The best of the four triples without cross-validation lies from {glue:text}`evidence-below`
    nats of log evidence below that pick to {glue:text}`evidence-above` above it, which may be
    chance, so still smaller output scales may do as well.""",
)
def test_a_still_smaller_output_scale_is_about_as_good_on_some_data_sets():
    count = len(folds()["triples"])
    every = np.array([row["all"] for row in evidence()[0]])
    above = every[:, count:].max(axis=1) - every[:, :count].max(axis=1)
    assert abs(above.max()) < 4 and above.min() < -3  # of errors of 0.6 to 0.8


@says(
    "choosing-the-prior",
    """Turned alone, from 1 to its best value, it brings {glue:text}`dial-share` % of what three
    scales bring on the labels left out""",
    "past its best value the loss rises again",
)
@says(
    "priors-judged",
    """On the labels left out its best value brings {glue:text}`dial-share` % of the gain of three
    scales. There the chains to all labels have not mixed""",
    """At an output scale of 6 they have, and that row has {glue:text}`dial-six` % of the gain on
    fresh points.""",
)
def test_the_output_scale_alone_brings_most_of_the_gain():
    for pair in ((1.0, 1.0), tuple(grid()[0]["scales"][:2])):
        loss = [row["held_out_nll"] for row in on_dial(*pair).values()]
        best = int(np.argmin(loss))
        assert 0 < best < len(loss) - 1
        assert (np.diff(loss)[:best] < 0).all() and (np.diff(loss)[best:] > 0).all()
    dial, three = on_dial(1.0, 1.0), grid()[0]
    best = min(dial.values(), key=lambda row: row["held_out_nll"])
    assert not best["mixed"] and dial[6.0]["mixed"] and three["mixed"]
    for row, key, least in ((best, "held_out_nll", 0.8), (dial[6.0], "test_nll", 0.7)):
        assert least < (dial[1.0][key] - row[key]) / (dial[1.0][key] - three[key]) < 1


@says(
    "priors-judged",
    """Among the rest leave-one-out chooses {glue:text}`filtered`, which scores
    {glue:text}`filtered-nll` on the fresh points, worse by {glue:text}`filtered-lost` than the
    triple chosen by folds.""",
    "{term}`Leave-one-out` by importance sampling, heeding its own warnings, chooses a worse one.",
    "Leave-one-out that heeds its own warnings removes the priors that predict best.",
)
def test_leave_one_out_that_heeds_its_warnings_chooses_worse():
    heeded = [row for row in grid() if row["bad_pareto_k"] <= 9]
    filtered = min(heeded, key=lambda row: row["leave_one_out"])
    worse = np.subtract(filtered["test_nll_by_task"], grid()[0]["test_nll_by_task"])
    assert lower_end(worse) > 0
    assert min(row["test_nll"] for row in heeded) > grid()[0]["test_nll"] + 0.01
