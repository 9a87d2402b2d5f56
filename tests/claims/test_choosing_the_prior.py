"""Claims of the page ``choosing-the-prior``; those that it shares with ``priors-judged`` are with
that page.
"""

import numpy as np
from scipy import stats

from tests.claims.priors import grid, on_dial
from tests.claims.reading import lower_end, mixed, rows
from tests.claims.said import says


@says(
    "choosing-the-prior",
    "Labels left out rank them nearly as fresh points do; N(0, 1) is among the worst",
    "any of the best ten would do",
)
def test_labels_left_out_rank_priors_as_fresh_points_do():
    left_out, fresh = ([row[k] for row in grid()] for k in ("held_out_nll", "test_nll"))
    assert stats.spearmanr(left_out, fresh).statistic > 0.85
    plain = on_dial(1.0, 1.0)[1.0]
    assert np.mean(np.array(left_out) < plain["held_out_nll"]) > 0.85
    assert max(fresh[:10]) < fresh[0] + 0.02 < plain["test_nll"] - 0.05


@says(
    "choosing-the-prior",
    """On the {glue:text}`redraws` of twelve where both fits have mixed the mean gain is
    {glue:text}`redraw-gain`, with an interval over data sets.""",
)
def test_the_chosen_scales_gain_on_data_sets_drawn_anew():
    of_arms = rows("what_the_gain_is_made_of/arms")
    plain, chosen = of_arms["N(0, 1)"], of_arms["chosen over tasks"]
    assert len(plain["nll"]) == 12
    both = [
        mixed(of[0]) and mixed(of[1])
        for of in zip(plain["check"], chosen["check"][:12], strict=True)
    ]
    assert sum(both) >= 10
    assert lower_end(np.subtract(plain["nll"], chosen["nll"][:12])[both]) > 0.05


@says(
    "choosing-the-prior",
    """one chosen by a task's own fifty labels beats N(0, 1), and in part fits noise
    ({ref}`ex-prior-one-task`).""",
)
def test_a_task_that_chooses_alone_chooses_worse():
    left_out, fresh = (
        np.array([row[k] for row in grid()]) for k in ("held_out_nll_by_task", "test_nll_by_task")
    )
    alone = fresh[left_out.argmin(axis=0), np.arange(left_out.shape[1])]
    assert lower_end(alone - fresh[0]) > 0
    drawn = rows("what_the_gain_is_made_of/arms")
    assert lower_end(np.subtract(drawn["N(0, 1)"]["nll"], drawn["chosen per task"]["nll"][:12])) > 0


@says(
    "choosing-the-prior",
    """Here that brings {glue:text}`turns-share` % of the gain, with {glue:text}`turns-fits` triples
    in the place of {glue:text}`num-triples`.""",
)
def test_scales_turned_one_at_a_time_end_near_the_best():
    by_folds = {tuple(row["scales"]): row["held_out_nll"] for row in grid()}
    here, tried = (1.0, 1.0, 1.0), set()
    plain, best = by_folds[here], min(by_folds.values())
    for layer in (2, 1, 0, 2):
        turned = [
            of
            for of in by_folds
            if of[:layer] + of[layer + 1 :] == here[:layer] + here[layer + 1 :]
        ]
        tried |= {*turned}
        here = min(turned, key=by_folds.get)
    assert len(tried) < 25 and len(by_folds) == 140
    assert 0.9 < (plain - by_folds[here]) / (plain - best) <= 1


@says("choosing-the-prior", "wide priors mix worse")
def test_wide_priors_mix_worse():
    product = np.array([np.prod(row["scales"]) for row in grid()])
    has_mixed = np.array([row["mixed"] for row in grid()])
    assert has_mixed[product <= 12].mean() > has_mixed[product > 12].mean() + 0.2
