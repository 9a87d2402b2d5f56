"""Rivals of the learnt priors on the new tasks of ``transfer``, and the ceiling of what anyone
could do there.

The ceiling knows the moons' shape and not the angle of a task. The rivals share the features that
the training tasks have taught and give each new task a logistic head of its own: by chains, by
Laplace's approximation, or the most probable one. Redraws, new tasks and labels are those of
``transfer``, so that scores pair.
"""

from helpers import common, diagnostics

import jax
import numpy as np

from experiments.methods import heads, known_shape, new_heads, runs, scoring
from experiments.pages.informative_priors import transfer
from experiments.problems import new_tasks

SETTINGS = {
    "seed": 3023,
    "num_redraws": transfer.SETTINGS["num_redraws"],
    "sizes": transfer.SETTINGS["sizes"],
    "num_angles": 180,
    "widths": [5, 32],
    "features": new_heads.SETTINGS,
    "chosen_at": [2, 5, 10, 25],  # labels; fifty leave none to choose by, and get the choice of 25
    "chains": {"num_chains": 4, "num_warmup": 200, "num_samples": 1000},
    "thin": 4,  # of draws that predict
}
KNOWN, SHARED = "known shape, unknown angle", "{} shared features"
CEILINGS = (KNOWN, f"{KNOWN}, labels alone")
ROUNDING = 1e-4  # of a score of exact probabilities
SAME_PRIOR = "trained heads, prior of the chains"


def units():
    """The ceilings and each number of features in one redraw."""
    arms = (KNOWN, *map(SHARED.format, SETTINGS["widths"]))
    redrawn, sizes = range(SETTINGS["num_redraws"]), SETTINGS["sizes"]
    return {
        f"{arm}, {i}": {"arm": arm, "redraw": i, "sizes": sizes} for arm in arms for i in redrawn
    }


SMALL = {"arm": SHARED.format(5), "redraw": 0, "sizes": [0, 5]}


def unit(arm, redraw, sizes):
    """Predict by both ceilings, or choose and train features and fit heads on them to the first
    labels of new tasks.
    """
    new = new_tasks.new("moons", redraw)
    if arm == KNOWN:
        found = [
            known_shape.predict(new, sizes, SETTINGS["num_angles"], positions)
            for positions in (True, False)
        ]
        return {"p": np.array(found)}
    width, old = int(arm.split()[0]), new_tasks.training(redraw)
    keys = [
        common.key(SETTINGS["seed"], arm, name, redraw)
        for name in ("choice", "features", "normals", "chains")
    ]
    ranked = new_heads.ranked(keys[0], old, SETTINGS["chosen_at"], width)
    starts = jax.random.split(keys[1], new_heads.SETTINGS["num_starts"])
    params = new_heads.train(starts, np.float32(new_heads.SETTINGS["penalties"]), *old[:2], width)
    normals = jax.random.normal(keys[2], (new_heads.SETTINGS["weighted"], width))
    some = [size for size in sizes if size]
    of = {kind: on_features(params, width, new, ranked, some, kind) for kind in new_heads.KINDS}

    def predicted(kind, by):
        """Predictions of one kind of head under the settings chosen for another, [size, start,
        task, point].
        """
        p = np.asarray(new_heads.predict(*of[by], normals))[new_heads.KINDS.index(kind)]
        return p.reshape(len(some), len(starts), *new.y_test.shape)

    *seen, f_test = of[heads.MCMC]
    posterior = heads.sample(keys[3], *seen, np.ones(len(f_test)), **SETTINGS["chains"])
    draws = np.asarray(posterior.draws["head"])[:, :, :: SETTINGS["thin"]]
    by_draw = heads.probabilities(draws, f_test)  # [chain, draw, size and start and task, point]
    return {
        "ranked": ranked,
        "chains": by_draw.mean(axis=(0, 1)).reshape(len(some), len(starts), *new.y_test.shape),
        "some": np.float32(by_draw[..., :: by_draw.shape[-1] // 5][..., :5]),
        "laplace": predicted(heads.LAPLACE, heads.LAPLACE),
        "trained": predicted(heads.TRAINED, heads.TRAINED),
        "same_prior": predicted(heads.TRAINED, heads.MCMC),
        **runs.kept_run(posterior),
    }


def on_features(params, width, new, ranked, sizes, kind):
    """Return what heads are fitted to, leading axis [size and start and task]: features times s,
    labels, marks, tests.

    Marks are 1 for the labels seen; the last are the features of the test points. Heads have the
    prior N(0, 1) there.
    """
    f, f_test = (np.asarray(heads.features_of(width, params, x)) for x in (new.x_train, new.x_test))
    at = [chosen(ranked, size)[kind] for size in sizes]
    f, f_test = (np.stack([s * a[penalty] for penalty, s in at]) for a in (f, f_test))
    y, weight = (
        np.asarray(new.y_train)[None, None],
        np.asarray(new_tasks.first_labels(new, sizes).weight)[:, None],
    )
    y, weight = (np.broadcast_to(a, f.shape[:-1]) for a in (y, weight))
    return tuple(a.reshape(-1, *a.shape[3:]) for a in (f, y, weight, f_test))


def chosen(ranked, size):
    """Return the place of the penalty and the scale of heads that leave the least NLL at so many
    labels, by kind.
    """
    labels = SETTINGS["chosen_at"]
    of_kinds = ranked[:, labels.index(min(size, labels[-1]))]
    best = [np.unravel_index(nll.argmin(), nll.shape) for nll in of_kinds]
    return {
        kind: (i, new_heads.SCALES[k]) for kind, (i, k) in zip(new_heads.KINDS, best, strict=True)
    }


def score(drawn, arm, redraw, sizes):
    """Scores of each arm by size; of the chains what tells whether they have mixed; and what was
    chosen.
    """
    y = np.asarray(new_tasks.new("moons", redraw).y_test)
    if arm == KNOWN:
        exact = [[exactly(p, y) for p in of_arm] for of_arm in drawn["p"]]
        return {
            "sizes": sizes,
            "arms": {
                name: scoring.joined(each) for name, each in zip(CEILINGS, exact, strict=True)
            },
        }
    # Before any label heads of mean 0 average to one half at every point, on any features.
    none = [
        scoring.scored_starts(np.full((new_heads.SETTINGS["num_starts"], *y.shape), 0.5), y)
    ] * sizes.count(0)
    parts = {
        heads.MCMC: "chains",
        heads.LAPLACE: "laplace",
        heads.TRAINED: "trained",
        SAME_PRIOR: "same_prior",
    }
    found = {
        name: [scoring.scored_starts(p, y) for p in drawn[part]] for name, part in parts.items()
    }
    return {
        "sizes": sizes,
        "arms": {f"{arm}, {name}": scoring.joined(none + each) for name, each in found.items()},
        "checks": {f"{arm}, {heads.MCMC}": check_of(drawn)},
        "chosen": {
            kind: [settings_of(drawn["ranked"], n, kind) for n in sizes if n]
            for kind in new_heads.KINDS
        },
        "left_out": drawn["ranked"].tolist(),
    }


def exactly(p, y):
    """Return the scores of exact probabilities; their errors are what another processor's rounding
    may change.
    """
    found = scoring.score_of(p, y)
    return (
        found | {f"{name}_error": ROUNDING for name in found} | {"accuracy_error": 100 / np.size(y)}
    )


def check_of(drawn):
    """Check all posteriors of heads at five test points each, as ``transfer`` does."""
    check = runs.diagnosis(runs.run_from(drawn), np.moveaxis(drawn["some"], 2, 0))
    rhat = diagnostics.summarize(np.moveaxis(drawn["stats"]["log_density"], 0, 2)).rhat
    return check | {"rhat_log_density": float(np.quantile(rhat, 0.95))}


def settings_of(ranked, size, kind):
    """Return penalty and scale as numbers."""
    penalty, scale = chosen(ranked, size)[kind]
    return [new_heads.SETTINGS["penalties"][penalty], float(scale)]


def rows(scored):
    """A row for each arm, with entries over redraws, as ``transfer`` has them."""
    found = {}
    for one in scored.values():
        for name, scores in one["arms"].items():
            row = found.setdefault(
                name, {"tasks": "moons", "name": name, "sizes": one["sizes"], "scores": []}
            )
            row["scores"].append(scores)
            row.setdefault("checks", []).append(one.get("checks", {}).get(name, {}))
            kind = name.partition("features, ")[2]
            if kind in one.get("chosen", {}):
                row.setdefault("chosen", []).append(one["chosen"][kind])
                left_out = np.array(one["left_out"][new_heads.KINDS.index(kind)])
                row.setdefault("least_left_out", []).append(left_out.min(axis=(1, 2)).tolist())
    return list(found.values())
