"""Few-shot digits: a network trained on five of ten classes becomes a prior for tasks on the other five.

One redraw: a random split of the classes. The prior's hidden weights are N(trained weights, s^2), its output weights
N(0, t^2), since the classes are new. The scales s and t of every arm, and the steps of fine-tuning, are chosen on base
classes alone: a network trained on three of them, tasks on the other two.
"""

from helpers import diagnostics, mcmc, metrics

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments import shared
from experiments.informative_priors import few_shot
from experiments.informative_priors.few_shot import LAYER, OF_LABELS, SIZE, UNRAVEL
from experiments.what_the_gain_is_made_of import redraws

SETTINGS = {
    **few_shot.SETTINGS,
    "num_redraws": 10,
    "hidden_scales": [0.03, 0.1, 0.3, 1.0],
    "narrow": 0.1,  # the hidden scale of a prior that trusts the trained features
    "output_scales": [1.0, 3.0, 10.0, 30.0],
    "num_chains": 4,
    "num_warmup": 150,
    "num_samples": 300,
    "thin": 2,  # draws that predict
    # Sixty-four networks for each arm: fits that rank scales may be shorter than those that are compared.
    "tuning": {"num_warmup": 100, "num_samples": 50, "max_tree_depth": 7},
}
PRIORS = ("pre-trained prior", "pre-trained prior, narrow", "scales only", "N(0, 1)")
ARMS = (*PRIORS, "fine-tuning", "logistic regression")
SMALL = {"arm": "N(0, 1)", "redraw": 0, "shots": [1, 5]}


def units():
    """An arm on a split of the classes each."""
    shots = SETTINGS["shots"]
    return {name: {"arm": arm, "redraw": i, "shots": shots} for arm in ARMS for i, name in enumerate(names_of(arm))}


def names_of(arm):
    """Return the names of an arm's units."""
    return [f"{arm}, {i}" for i in range(SETTINGS["num_redraws"])]


def log_density(position, task):
    """Log posterior of weights ``location + scale * position``: a prior's numbers are data, one program serves all."""
    observed, location, scale = task
    of_labels = OF_LABELS(UNRAVEL(location + scale * position), observed).sum()
    return tfd.Normal(0.0, 1.0).log_prob(position).sum() + of_labels


def by_layer(pair):
    """Return the scale of every weight, of a scale of the hidden and one of the output layer."""
    return np.array(pair, np.float32)[LAYER]


def sample(key, tasks, location, scales, **lengths):
    """Fit each task under its own scales; return the run and weights [task, chain, draw, weight]."""
    key_start, key_chains = jax.random.split(key)
    batch = (len(tasks), SETTINGS["num_chains"])
    starts = mcmc.normal_starts(key_start, jax.ShapeDtypeStruct((SIZE,), jnp.float32), batch)
    numbers = few_shot.stacked(tasks), np.tile(location, (len(tasks), 1)), np.stack(scales)
    posterior = mcmc.sample(key_chains, log_density, starts, tasks=numbers, **lengths)
    return posterior, location + np.stack(scales)[:, None, None] * np.asarray(posterior.draws)


def tuned_scales(key, tasks, location, pairs):
    """Fit tuning tasks under every pair of scales: NLL of each pair, its error, and what tells of the fits."""
    every = [task for _ in pairs for task in tasks]
    scales = [by_layer(pair) for pair in pairs for _ in tasks]
    posterior, w = sample(key, every, location, scales, **SETTINGS["tuning"])
    losses, errors, some = [], [], []
    for of_task, task in zip(w, every, strict=True):
        p = of_labels(of_task, task)
        losses.append(-np.log(p.mean(axis=(0, 1))).mean())
        errors.append(diagnostics.nll_error(p, np.ones(p.shape[-1], int)))
        some.append(p[..., :: p.shape[-1] // 3][..., :3])
    losses, errors = (np.reshape(values, (len(pairs), -1)) for values in (losses, errors))
    return {
        "pairs": np.array(pairs),
        "nll": losses.mean(axis=1),
        "nll_error": np.sqrt((errors**2).sum(axis=1)) / len(tasks),
        "p": np.stack(some),
        **shared.kept_of(posterior),
    }


def of_labels(w, task):
    """Return the probability of each label of a task's other images, [chain, draw, point]."""
    p = np.asarray(few_shot.probabilities(w, task["x"]), np.float64)
    return np.clip(p[..., np.arange(len(task["y"])), task["y"]], redraws.LEAST, 1.0)


def unit(arm, redraw, shots):
    """Fit one arm to one split of the classes."""
    classes, tuning, tasks = few_shot.problem(redraw, shots)
    if arm == "logistic regression":
        return few_shot.logistic_regression(tuning, tasks)
    if arm == "fine-tuning":
        return few_shot.fine_tuning(redraw, classes, tuning, tasks)
    trained = arm.startswith("pre-trained")
    found, pair = {}, [1.0, 1.0]
    if arm != "N(0, 1)":
        hidden = [SETTINGS["narrow"]] if arm.endswith("narrow") else SETTINGS["hidden_scales"]
        pairs = [[a, b] for a in hidden for b in SETTINGS["output_scales"]]
        location = trained * few_shot.features(shared.key(SETTINGS["seed"], "three", redraw, 0), classes[:3])
        found["tuning"] = tuned_scales(shared.key(SETTINGS["seed"], arm, "tuning", redraw), tuning, location, pairs)
        pair = pairs[int(found["tuning"]["nll"].argmin())]
    location = trained * few_shot.features(shared.key(SETTINGS["seed"], "five", redraw, 0), classes[:5])
    lengths = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    key, scales = shared.key(SETTINGS["seed"], arm, redraw), len(tasks) * [by_layer(pair)]
    posterior, w = sample(key, tasks, location, scales, **lengths)
    run = shared.kept_of(posterior)
    return found | run | {"w": w[:, :, :: SETTINGS["thin"]], "chosen": np.array(pair)}


def score_of(p, y):
    """Return the scores of class probabilities [point, class], by the names of ``redraws``."""
    found = metrics.class_scores(jnp.float32(np.clip(p, redraws.LEAST, 1.0)), y)
    return {name: float(found[of]) for name, of in redraws.NAMES.items()}


def score(drawn, arm, redraw, shots):
    """Scores by number of images, and what was chosen and how the chains mixed."""
    *_, tasks = few_shot.problem(redraw, shots)
    chosen = {"chosen": drawn["chosen"].tolist()}
    if arm not in PRIORS:
        scored = redraws.scored_starts if arm == "fine-tuning" else redraws.scored_parts
        found = [scored(drawn["p"][str(i)], task["y"], score_of) for i, task in enumerate(tasks)]
        return in_words(found) | {"check": chosen}
    found, some = [], []
    for w, task in zip(drawn["w"], tasks, strict=True):
        p = np.asarray(few_shot.probabilities(w, task["x"]))
        halves = [half.mean(axis=0) for chain in p for half in np.array_split(chain, 2)]
        label = of_labels(w, task)
        of_chains = [-float(np.log(chain.mean(axis=0)).mean()) for chain in label]
        more = {"nll_error": diagnostics.nll_error(label, np.ones(len(task["y"]), int)), "nll_by_chain": of_chains}
        found.append(redraws.scored_parts(halves, task["y"], score_of) | more)
        some.append(label[..., :: label.shape[-1] // 5][..., :5])
    rhat = diagnostics.summarize(np.moveaxis(drawn["stats"]["log_density"], 0, 2)).rhat
    check = shared.diagnosed(shared.run_of(drawn), np.stack(some)) | {"rhat_log_density": float(rhat.max())} | chosen
    if "tuning" in drawn:
        check["tuning"] = {name: drawn["tuning"][name].tolist() for name in ("pairs", "nll", "nll_error")}
        check["tuning"]["check"] = shared.diagnosed(shared.run_of(drawn["tuning"]), drawn["tuning"]["p"])
    return in_words(found) | {"check": check}


def in_words(found):
    """Return scores of each number of images by the names of ``metrics``, and the NLL by chain apart."""
    words = [
        {of + end: one[name + end] for name, of in redraws.NAMES.items() for end in ("", "_error")} for one in found
    ]
    return {"scores": words, "nll_by_chain": [one["nll_by_chain"] for one in found]}


def rows(scored):
    """A row for each arm, with entries over splits."""
    parts = ("scores", "nll_by_chain", "check")
    return [{"name": arm, **{part: [scored[name][part] for name in names_of(arm)] for part in parts}} for arm in ARMS]
