"""When pooling pays: number of tasks, labels per task, unequal sizes, one alien task.

Every arm has the same data and nothing else. The flat networks' scales are one triple for all
tasks, that of the least NLL of points left out of five folds of these very data, however few they
are; beside them stand scales that are learnt with the weights, and N(0, 1). The base setting,
eighteen tasks of 50 labels, has the data sets of ``arms``.
"""

from helpers import common, densities, metrics

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import cross_validation, network_fits, scoring
from experiments.pages.what_the_gain_is_made_of import arms
from experiments.problems import moons_redrawn

SETTINGS = {
    # Redraws of each setting [number of tasks, labels of each], fewer where a fit takes minutes.
    "num_redraws": {
        "2, 50": 10, "5, 50": 8, "18, 50": 4, "18, 5": 5, "18, 15": 5, "2, 5": 8,
        "2, 200": 8, "50, 5": 8, "50, 50": 3, "18, 200": 3, "50, 200": 3,
        "alien": 4, "unequal sizes": 3,
    },
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}  # fmt: skip
SEED = 3041
NOISE = 0.3
SIZES_OF_TASKS = [5, 15, 50, 100, 150]  # four tasks of each, in one fit
RUN = {"num_warmup": 300, "num_samples": 800}
LONG_RUN = {"num_warmup": 300, "num_samples": 1200}  # under a wide hyperprior draws are worth less
# Layers trade factors where tanh is a line, so that one of them may stay at 1. So it is at the
# least scale of the first layer: beyond lies nothing new. Both other ends are far from where folds
# have chosen on a shorter grid.
TRIPLES = [
    [a, 1.0, b] for a in (0.0625, 0.25, 0.5, 1.0, 2.0) for b in (0.75, 3.0, 12.0, 48.0, 192.0)
]
FINALISTS = 3
MOST_OF_FOLDS = 1000  # labels by which scales are chosen; of more there are enough tasks
SHARED = {"hierarchical, N+(0, 1)": moons_redrawn.HIERARCHICAL, "hierarchical, N+(0, 5)": arms.WIDE}
LEARNT = "scales learnt, N+(0, 5)"
ARMS = ("N(0, 1)", "scales chosen", "hierarchical, N+(0, 1)")
WIDE = ("hierarchical, N+(0, 5)", LEARNT)
SMALL = {"setting": "2, 5", "arm": "scales chosen", "redraw": 0}


def units():
    """An arm at one setting on a data set each."""
    return {
        f"{setting}, {arm}, {i}": {"setting": setting, "arm": arm, "redraw": i}
        for setting, arm in places()
        for i in range(SETTINGS["num_redraws"][setting])
    }


def places():
    """Return settings and the arms at each."""
    of_arms = dict.fromkeys(SETTINGS["num_redraws"], ARMS)
    # With few tasks a hyperprior may decide, so that a wider one stands beside N+(0, 1).
    of_arms |= dict.fromkeys(("2, 50", "5, 50"), ARMS + WIDE)
    of_arms |= dict.fromkeys(("unequal sizes", "alien"), (ARMS[0], ARMS[-1]))
    of_arms["18, 50"] = ARMS[-1:]  # the others are those of ``arms``
    return [(setting, arm) for setting, names in of_arms.items() for arm in names]


def problem(setting, redraw):
    """Return a list of parts, each tasks of one size."""
    if setting == "unequal sizes":
        options = {"num_tasks": 4, "noise": NOISE}
        return [
            moons_redrawn.drawn("size", size, redraw, num_train=size, **options)
            for size in SIZES_OF_TASKS
        ]
    if setting == "alien":  # in the place of the last task, so that the others can be compared
        tasks = moons_redrawn.drawn(redraw, noise=NOISE)
        num_train = tasks.y_train.shape[1]
        x, y = stripes(
            common.key(moons_redrawn.SEED, "alien", redraw), num_train + moons_redrawn.NUM_TEST
        )
        return [
            tasks._replace(
                x_train=tasks.x_train.at[-1].set(x[:num_train]),
                y_train=tasks.y_train.at[-1].set(y[:num_train]),
                x_test=tasks.x_test.at[-1].set(x[num_train:]),
                y_test=tasks.y_test.at[-1].set(y[num_train:]),
            )
        ]
    num_tasks, num_train = map(int, setting.split(", "))
    names = [redraw] if setting == "18, 50" else ["pooling", setting, redraw]
    return [moons_redrawn.drawn(*names, num_tasks=num_tasks, num_train=num_train, noise=NOISE)]


def stripes(key, num_points):
    """An alien task: stripes across a random direction, one label in ten wrong."""
    key_x, key_angle, key_flip = jax.random.split(key, 3)
    x = jax.random.normal(key_x, (num_points, 2))
    angle = 2 * jnp.pi * jax.random.uniform(key_angle)
    side = jnp.sin(2.5 * (x @ jnp.array([jnp.cos(angle), jnp.sin(angle)]))) > 0
    return x, (side ^ jax.random.bernoulli(key_flip, 0.1, (num_points,))).astype(jnp.int32)


def joined(parts):
    """Return training points, labels, weights, padded to the largest part; [task, point]."""
    most = max(part.y_train.shape[1] for part in parts)

    def padded(part):
        pad = [(0, 0), (0, most - part.y_train.shape[1])]
        weight = jnp.pad(jnp.ones(part.y_train.shape), pad)
        return jnp.pad(part.x_train, [*pad, (0, 0)]), jnp.pad(part.y_train, pad), weight

    return [jnp.concatenate(leaves) for leaves in zip(*map(padded, parts), strict=True)]


def test_of(parts):
    """Return test points and labels of all tasks."""
    return [
        jnp.concatenate([getattr(part, name) for part in parts]) for name in ("x_test", "y_test")
    ]


def unit(setting, arm, redraw):
    """Fit one arm, with what it chose."""
    parts = problem(setting, redraw)
    x, y, weight = joined(parts)

    def key(*names):
        return common.key(SEED, setting, arm, redraw, *names)

    if arm in ("N(0, 1)", "scales chosen"):
        found = chosen(key("folds"), *parts) if arm == "scales chosen" else {"scales": np.ones(3)}
        scales = np.tile(found["scales"], (len(x), 1))
        fit = network_fits.fit_flat(
            key("chains"), densities.observe(x, y, scales, weight=weight), **RUN
        )
        return found | network_fits.thinned_run(fit)
    observed = densities.observe(x, y, weight=weight)
    if arm == LEARNT:
        fit = arms.fit_shared(key("chains"), arms.WIDE, observed, means=(), **LONG_RUN)
    else:
        fit = arms.fit_shared(
            key("chains"), SHARED[arm], observed, **(LONG_RUN if arm in WIDE else RUN)
        )
    return network_fits.thinned_run(fit)


def chosen(key, part):
    """Return the triple of the least NLL left out of five folds, and the NLL of all."""
    key_short, key_long = jax.random.split(key)
    num_train = part.y_train.shape[1]
    seen = jax.tree.map(lambda a: a[: max(2, MOST_OF_FOLDS // num_train)], part)
    short = left_out(key_short, seen, TRIPLES, **arms.SETTINGS["short"])
    best = np.argsort(short)[:FINALISTS]
    long = left_out(key_long, seen, [TRIPLES[i] for i in best], **arms.SETTINGS["long"])
    return {"scales": np.array(TRIPLES[best[long.argmin()]]), "held_out": short}


def left_out(key, tasks, triples, **sizes):
    """NLL left out under each triple, mean over tasks, which may have few points."""
    y = cross_validation.in_folds(tasks.y_train)

    def one(key, scales):
        p = cross_validation.fit_folds(key, tasks, scales, **sizes)[1].mean(
            axis=(0, 1), dtype=np.float64
        )
        return float(
            metrics.negative_log_likelihood(np.clip(p, scoring.LEAST, 1 - scoring.LEAST), y)
        )

    return np.array([one(jax.random.fold_in(key, i), scales) for i, scales in enumerate(triples)])


def score(drawn, setting, arm, redraw):
    """Scores on the test points, and the NLL of every task."""
    x_test, y_test = test_of(problem(setting, redraw))
    if arm in ("N(0, 1)", "scales chosen"):
        p = np.asarray(network_fits.flat_probabilities(drawn["draws"], x_test))
        found = scoring.scored(p, y_test) | {"check": scoring.check_of_run(drawn, p)}
        more = {"scales": drawn["scales"].tolist()}
    else:
        draws = {"mean": {}, **drawn["draws"]}
        p = np.asarray(network_fits.probabilities(moons_redrawn.LOGITS, draws, x_test))
        found, more = scoring.with_sampler(drawn, p, y_test), {}
    of_tasks = [scoring.scored(p[:, :, task], y_test[task]) for task in range(len(y_test))]
    more |= {
        f"task_{name}": [round(one[name], 6) for one in of_tasks] for name in ("nll", "nll_error")
    }
    return found | {"more": more}


def rows(scored):
    """A row for each arm at each setting, with entries over data sets."""
    return rows_of(scored, places(), SETTINGS["num_redraws"])


def rows_of(scored, places, num_redraws):
    """A row for each of these settings and arms, with entries over so many data sets."""
    found = []
    for setting, arm in places:
        redrawn = range(num_redraws[setting])
        row = scoring.row(f"{setting}, {arm}", [scored[f"{setting}, {arm}, {i}"] for i in redrawn])
        row["more"] |= {"setting": setting, "arm": arm}
        found.append(row)
    return found
