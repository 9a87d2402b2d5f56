"""Rows for tests of ``tables``, a draw of a model of them, and what is behind its link by hand."""

from helpers import numpyro_models

import jax
import numpy as np
import pandas as pd
from numpyro import handlers
from numpyro.infer.util import constrain_fn

from tables import written

NUM_ROWS = 36


def frame():
    """Return rows of crossed groups and an outcome for each family; x is never near 0."""
    random = np.random.default_rng(7)
    counts = random.poisson(2.0, NUM_ROWS)
    return pd.DataFrame(
        {
            "x": random.uniform(5, 9, NUM_ROWS),
            "z": random.normal(size=NUM_ROWS),
            "g": random.permutation(np.arange(NUM_ROWS) % 5),
            "h": random.choice([*"abc"], NUM_ROWS),
            "number": random.normal(3, 2, NUM_ROWS),
            "positive": random.gamma(2.0, 1.5, NUM_ROWS),
            "share": random.uniform(0.1, 0.9, NUM_ROWS),
            "flag": random.random(NUM_ROWS) < 0.4,
            "kind": random.choice(["low", "middle", "high"], NUM_ROWS),
            "count": counts,
            "of": counts + random.integers(1, 5, NUM_ROWS),
            "time": random.uniform(0.5, 2, NUM_ROWS),
            "weight": random.uniform(0, 2, NUM_ROWS),
            "bound": random.permutation(np.arange(NUM_ROWS) % 3) - 1,
        }
    ).assign(kind=lambda f: pd.Categorical(f.kind, ["low", "middle", "high"], ordered=True))


def somewhere(made, seed=1):
    """Return a random draw in the table's units, and the log likelihood that the sampler sees."""
    made = made._replace(exact=False)
    found = numpyro_models.of(written.written(made), made.data)
    random = np.random.default_rng(seed)
    position = {n: random.normal(0, 0.4, leaf.shape) for n, leaf in found.shapes.items()}
    sites = constrain_fn(found.model, (made.data,), {}, position, return_deterministic=True)
    latent = {name: sites[name] for name in found.shapes}
    model = handlers.substitute(handlers.seed(found.model, jax.random.key(0)), data=latent)
    trace = handlers.trace(model).get_trace(made.data)
    assert np.isfinite(found.log_density(position, made.data))
    draw = {name: np.asarray(site) for name, site in sites.items() if name not in found.shapes}
    return draw, float(trace["outcome"]["fn"].log_factor)


def behind_by_hand(made, draw, f, more=0.0):
    """Return what is behind the link of a draw, row by row, in the table's units."""
    x = {"Intercept": 1.0, "x": f.x.to_numpy(), "z": f.z.to_numpy()}
    found = np.zeros((NUM_ROWS, *draw["coefficient"].shape[1:])) + np.asarray(more)
    for name, coefficient in zip(made.columns, draw["coefficient"], strict=True):
        found = found + np.multiply.outer(x[name] * np.ones(NUM_ROWS), coefficient)
    for part in made.parts:
        at = f[part.term.factors[0]].astype(str).map(part.levels.index).to_numpy()
        effect = draw[f"effect_{part.term.name}"][at].reshape(NUM_ROWS, len(part.columns), -1)
        for i, name in enumerate(part.columns):
            row = (x[name] * np.ones(NUM_ROWS))[:, None] * effect[:, i]
            found = found + row.reshape(found.shape)
    return found
