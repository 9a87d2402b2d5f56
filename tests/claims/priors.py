"""The search over prior scales and the evidence of priors, as claims of two pages read them."""

import numpy as np

from tests.claims.reading import rows, stored

LABELS = {"first": 25, "later": 25, "all": 50}  # of a task, behind each part of the evidence


def grid():
    """Rows of the search over triples, the chosen one first."""
    return sorted(stored("flat_bnn/prior_scale"), key=lambda row: row["held_out_nll"])


def evidence():
    """Rows of the evidence of triples, one a data set, and the row by bridge sampling."""
    *found, bridged = stored("what_the_gain_is_made_of/evidence")
    return found, bridged


def folds():
    """What five folds say of the triples on the same data sets and on more."""
    return rows("what_the_gain_is_made_of/arms")["chosen over tasks"]["more"]


def losses():
    """Triples that have both, and their loss by part of the evidence and by folds, nats a label,
    [data set, triple].
    """
    (found, _), by_folds = evidence(), folds()
    triples = by_folds["triples"]
    assert all(row["triples"][: len(triples)] == triples for row in found)
    assert [row["redraw"] for row in found] == [*range(len(found))]
    loss = {
        name: -np.array([row[name] for row in found])[:, : len(triples)] / (18 * number)
        for name, number in LABELS.items()
    }
    return triples, loss | {"folds": np.array(by_folds["held_out_nll"])[: len(found)]}


def picked():
    """Triples picked by the evidence and by folds, [data set, layer], and their NLL on fresh
    points, [data set].
    """
    triples, loss = losses()
    at = {name: loss[name].argmin(axis=1) for name in ("all", "folds")}
    fresh = [np.array(row["nll"]) for row in evidence()[0]]
    nll = {
        name: np.array([one[i] for one, i in zip(fresh, places, strict=True)])
        for name, places in at.items()
    }
    return {name: np.array(triples)[places] for name, places in at.items()}, nll


def on_dial(*pair):
    """Rows by output scale, in its order, for one pair of input and hidden scales."""
    part = [row for row in grid() if row["scales"][:2] == [*pair]]
    return {row["scales"][2]: row for row in sorted(part, key=lambda row: row["scales"][2])}
