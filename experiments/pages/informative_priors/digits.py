"""Few-shot digits: what is learnt of base classes becomes a prior for tasks on other classes.

One redraw: a random split of the classes (``few_shot_digits``). A prior of the hidden weights is a
normal round the trained ones, with one variance, with the covariance of one network's training path
(Shwartz-Ziv et al. 2022), or with that of networks of many few-shot tasks on base classes; or the
hidden weights are held fast and such a prior is of a class's output weights. Scales of every prior
are chosen by one rule on tasks of the split's tuning classes.
"""

from helpers import common, densities, diagnostics, mcmc, metrics, networks

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import few_shot_features, runs, scoring
from experiments.methods.few_shot_features import FEATURES, HIDDEN, OF_LABELS, SIZE, UNRAVEL
from experiments.problems import few_shot_digits
from experiments.problems.few_shot_digits import HEAD

SETTINGS = {
    **few_shot_digits.SETTINGS,
    "num_redraws": 5,
    # A layer's scale is the root mean square of its weights' prior standard deviations. For every
    # arm the search begins at these powers of ten, hidden and output layer, and goes to the best
    # place one step away while that is better by so much: a grid without ends but those of the
    # numbers.
    "search": {"start": [0.0, 0.5], "step": 0.5, "least_gain": 0.005, "end": 4.0},
    "num_chains": 4,
    "num_warmup": 150,
    "num_samples": 400,
    "max_tree_depth": 7,
    "thin": 2,  # draws that predict
    # Fits that rank scales may be shorter than those that are compared.
    "tuning": {"num_chains": 2, "num_warmup": 60, "num_samples": 40, "max_tree_depth": 6},
    "comparisons": [  # each one's gain over the other
        ["scales chosen", "N(0, 1)"],
        ["whole network, isotropic", "scales chosen"],
        ["whole network, one network", "whole network, isotropic"],
        ["whole network, many tasks", "whole network, one network"],
        ["whole network, isotropic", "last layer, isotropic"],
        ["last layer, one network", "last layer, isotropic"],
        ["last layer, many tasks", "last layer, isotropic"],
        ["whole network, many tasks", "fine-tuning"],
        ["whole network, many tasks", "logistic regression, pixels"],
        ["scales chosen", "logistic regression, pixels"],
    ],
}
PIXELS = ("N(0, 1)", "scales chosen")
LAST = ("last layer, isotropic", "last layer, one network", "last layer, many tasks")
WHOLE = ("whole network, isotropic", "whole network, one network", "whole network, many tasks")
PRIORS = (*PIXELS, *LAST, *WHOLE)
POINTS = ("fine-tuning", "logistic regression, features", "logistic regression, pixels")
ARMS = (*PRIORS, *POINTS)
SMALL = {"arm": "N(0, 1)", "redraw": 0}
OF_HEAD, (UNRAVEL_HEAD, _) = (
    densities.label_log_likelihood(HEAD),
    networks.weights_of(HEAD, FEATURES - 1),
)


def units():
    """An arm on a split of the classes each."""
    return {
        f"{arm}, {i}": {"arm": arm, "redraw": i}
        for i in range(SETTINGS["num_redraws"])
        for arm in ARMS
    }


def weights(position, scales, prior):
    """Return the weights of a position of N(0, 1) coordinates: output layer alone, or both.

    The low-rank and the diagonal part have coordinates of their own: the prior is white, and no
    matrix is factored.
    """
    output = (scales[1] * prior.root @ position["output"]).ravel()
    if "each" not in position:
        return output
    hidden = prior.mean + scales[0] * (
        prior.sd * position["each"] + position["common"] @ prior.factors
    )
    return jnp.concatenate([hidden, output])


def log_density(position, task, prior):
    """Log posterior of white coordinates; tasks bring scales, so that one program serves."""
    observed, scales = task
    w = weights(position, scales, prior)
    of_labels = (
        OF_LABELS(UNRAVEL(w), observed)
        if "each" in position
        else OF_HEAD(UNRAVEL_HEAD(w), observed)
    )
    white = [tfd.Normal(0.0, 1.0).log_prob(leaf).sum() for leaf in jax.tree.leaves(position)]
    return sum(white) + of_labels.sum()


def shapes(arm, prior):
    """Return the shapes of a position."""
    sizes = {"output": (FEATURES, few_shot_digits.CLASSES)}
    if arm not in LAST:
        sizes |= {"each": (HIDDEN,), "common": prior.factors.shape[:1]}
    return {name: jax.ShapeDtypeStruct(size, jnp.float32) for name, size in sizes.items()}


def sample(key, arm, prior, tasks, place, num_chains, **lengths):
    """Fit tasks under scales of powers of ten; return run, weights [task, chain, draw, weight]."""
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, shapes(arm, prior), (len(tasks), num_chains))
    observed, scales = (
        few_shot_digits.stacked(tasks),
        np.tile(np.float32(10.0 ** np.array(place)), (len(tasks), 1)),
    )
    if arm in LAST:
        trained = np.concatenate([prior.mean, np.zeros(SIZE - HIDDEN, np.float32)])
        observed = observed._replace(x=few_shot_features.features(trained, observed.x))
    posterior = mcmc.sample(
        key_chains, log_density, starts, tasks=(observed, scales), data=prior, **lengths
    )
    w = np.asarray(_weights(posterior.draws, scales, prior))
    if arm in LAST:
        w = np.concatenate([np.broadcast_to(prior.mean, (*w.shape[:-1], HIDDEN)), w], axis=-1)
    return posterior, w


@jax.jit
def _weights(draws, scales, prior):
    of_task = jax.vmap(jax.vmap(weights, (0, None, None)), (0, None, None))
    return jax.lax.map(lambda task: of_task(*task, prior), (draws, scales))


def prior_of(arm, redraw):
    """Return the prior of an arm at scales of 1."""
    if arm in PIXELS:
        return few_shot_features.isotropic(np.zeros(HIDDEN))
    plain = few_shot_features.isotropic(few_shot_features.mean_hidden(redraw))
    if arm.endswith("isotropic"):
        return plain
    learnt = (
        few_shot_features.of_one_network(redraw)
        if arm.endswith("one network")
        else few_shot_features.of_many_tasks(redraw)
    )
    # In whole networks the priors differ in the hidden layer alone: new classes have new output
    # weights.
    return plain._replace(root=learnt.root) if arm in LAST else learnt._replace(root=plain.root)


def searched(key, arm, prior, tasks):
    """Choose scales by the mean NLL of tuning tasks; return the place, and what was at each.

    A place is the powers of ten of both scales. Where the hidden layer is held fast, its power is
    that of the start.
    """
    search, found = SETTINGS["search"], {}
    moves = [(0.0,) if arm in LAST else (-1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)]
    best, better = None, tuple(search["start"])
    while best is None or found[best][0] - found[better][0] >= search["least_gain"]:
        best = better
        for move in itertools.product(*moves):
            place = tuple(np.add(best, np.multiply(search["step"], move)).tolist())
            if place not in found and max(np.abs(place)) <= search["end"]:
                found[place] = tried(key, arm, prior, tasks, place)
        better = min(found, key=lambda place: found[place][0])
    return best, found


def tried(key, arm, prior, tasks, place):
    """Fit tuning tasks at a place: mean NLL, its error, share of warm-up's steps at the limit.

    All places have one key, so that noise which they share does not choose between them.
    """
    posterior, w = sample(key, arm, prior, tasks, place, **SETTINGS["tuning"])
    p = [
        of_labels(few_shot_features.probabilities(of_task, task["x"]), task)
        for of_task, task in zip(w, tasks, strict=True)
    ]
    errors = [diagnostics.nll_error(one, np.ones(one.shape[-1], int)) for one in p]
    loss = np.mean([-np.log(one.mean(axis=(0, 1))).mean() for one in p])
    return (
        float(loss),
        float(np.linalg.norm(errors) / len(p)),
        float(posterior.warmup.at_limit.mean()),
    )


def of_labels(p, task):
    """Return the probability of each label of a task's other images, [chain, draw, point]."""
    return np.clip(
        np.asarray(p, np.float64)[..., np.arange(len(task["y"])), task["y"]],
        scoring.LEAST,
        1.0,
    )


def unit(arm, redraw):
    """Fit one arm to the tasks of one split of the classes."""
    if arm in POINTS:
        return (
            few_shot_features.fine_tuning(redraw)
            if arm == "fine-tuning"
            else few_shot_features.ridge(redraw, arm)
        )
    _, tuning, tasks = few_shot_digits.problem(redraw)
    prior, place, found = prior_of(arm, redraw), (0.0, 0.0), {}
    if arm != "N(0, 1)":
        place, found = searched(
            common.key(SETTINGS["seed"], arm, "tuning", redraw), arm, prior, tuning
        )
    lengths = {
        "num_chains": SETTINGS["num_chains"],
        "num_warmup": SETTINGS["num_warmup"],
        "num_samples": SETTINGS["num_samples"],
        "max_tree_depth": SETTINGS["max_tree_depth"],
    }
    posterior, w = sample(
        common.key(SETTINGS["seed"], arm, redraw), arm, prior, tasks, place, **lengths
    )
    w = w[:, :, :: SETTINGS["thin"]]
    p = {
        str(i): np.asarray(few_shot_features.probabilities(w[i], task["x"]))
        for i, task in enumerate(tasks)
    }
    rest = {"tried": np.array([*found]), "found": np.array([*found.values()])} if found else {}
    sizes = {"mean": np.sqrt((prior.mean**2).mean()), "sd": prior.size}
    return {"p": p, "chosen": np.array(place), "sizes": sizes, **rest, **runs.kept_run(posterior)}


def score_of(p, y):
    """Return the scores of class probabilities [point, class], by the names of ``scoring``."""
    found = metrics.class_scores(jnp.float32(np.clip(p, scoring.LEAST, 1.0)), y)
    return {name: float(found[of]) for name, of in scoring.NAMES.items()}


def score(drawn, arm, redraw):
    """Scores by number of images, and what was chosen of what, and how the chains mixed."""
    *_, tasks = few_shot_digits.problem(redraw)
    check = {"chosen": drawn["chosen"].tolist()}
    if arm in POINTS:
        found = [
            scoring.scored_parts(drawn["p"][str(i)][None], task["y"], score_of)
            for i, task in enumerate(tasks)
        ]
        return in_words(found) | {"check": check | {"nll": drawn["nll"].tolist()}}
    found, some = [], []
    for i, task in enumerate(tasks):
        p = drawn["p"][str(i)]
        halves = [half.mean(axis=0) for chain in p for half in np.array_split(chain, 2)]
        label = of_labels(p, task)
        of_chains = [-float(np.log(chain.mean(axis=0)).mean()) for chain in label]
        more = {
            "nll_error": diagnostics.nll_error(label, np.ones(len(task["y"]), int)),
            "nll_by_chain": of_chains,
        }
        found.append(scoring.scored_parts(halves, task["y"], score_of) | more)
        some.append(label[..., :: label.shape[-1] // 5][..., :5])
    check |= runs.diagnosis(runs.run_from(drawn), np.stack(some))
    check["sizes"] = {name: float(size) for name, size in drawn["sizes"].items()}
    if "tried" in drawn:
        check |= {"tried": drawn["tried"].tolist(), "found": drawn["found"].tolist()}
    return in_words(found) | {"check": check}


def in_words(found):
    """Scores of each number of images by the names of ``metrics``; the NLL by chain apart."""
    words = [
        {of + end: one[name + end] for name, of in scoring.NAMES.items() for end in ("", "_error")}
        for one in found
    ]
    return {"scores": words, "nll_by_chain": [one["nll_by_chain"] for one in found]}


def rows(scored):
    """A row for each arm, with entries over splits."""
    parts = ("scores", "nll_by_chain", "check")
    splits = range(SETTINGS["num_redraws"])
    return [
        {"name": arm, **{part: [scored[f"{arm}, {i}"][part] for i in splits] for part in parts}}
        for arm in ARMS
    ]
