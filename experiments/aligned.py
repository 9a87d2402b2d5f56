"""The fitted priors of `informative.py` again, on draws aligned to their own mean instead of to one draw.

The same redraws, group draws, new tasks and labels; only the reference of the alignment differs, and with it
every fit. Scores pair with those of `informative.py`.
"""

from helpers import data, diagnostics, hierarchical, priors

import informative
import jax
import jax.numpy as jnp
import numpy as np
import store
from informative import SIZE, TASKS, take

SETTINGS = {"seed": 3020, "num_redraws": 5, "every": 10, "arms": ["a normal a layer", "one normal"]}
SIZES, FEW = informative.SETTINGS["sizes"], informative.SETTINGS["joint_sizes"]


def fitted(key, raw):
    """Align group draws to their own mean; return networks [chain, draw, weight] and how the means mix."""
    aligned = priors.align(raw, priors.common_reference(take(raw, np.s_[:, :: SETTINGS["every"]])))
    found = diagnostics.summarize(aligned["mean"])
    check = {
        "rhat_means": [float(np.median(found.rhat)), float(found.rhat.max())],
        "ess_means": [float(np.median(found.ess_bulk)), float(found.ess_bulk.min())],
    }
    return np.asarray(priors.group_predictive(key, aligned)), check


def redraw(key, results):
    """The fitted arms on one redraw; return the fits' held-out densities."""
    key_data, key_group, *_ = jax.random.split(key, 20)  # as `informative.redraw`
    key_train, key_new, _, key_other = jax.random.split(key_data, 4)
    key_w, key_mixture, *keys = jax.random.split(jax.random.fold_in(key, 7), 4)
    tasks = data.rotated_moons(key_train, TASKS, 50, 2)
    new = data.rotated_moons(key_new, TASKS, 50, informative.SETTINGS["num_test"])
    w, check = fitted(key_w, informative.fit_group(key_group, tasks)[0])
    kept = {"group": check, "held_out_density": informative.held_out_density(w, informative.FITS)}
    mixtures = {name: np.mean(v) for name, v in kept["held_out_density"].items() if name.startswith("mixture")}
    kept["mixture"] = max(mixtures, key=mixtures.get)
    print({name: np.round(v, 1).tolist() for name, v in kept["held_out_density"].items()}, check, flush=True)

    flat = w.reshape(-1, SIZE)
    whiten, others = priors.whiten(flat), informative.other_tasks(key_other, new)
    parts = [informative.units(new, SIZES), *(informative.units(other, FEW) for other in others.values())]
    everything, count = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts), len(parts[0][1])
    for key, name in zip(keys, SETTINGS["arms"], strict=True):
        p, found = informative.sample_units(key, informative.FITS[name](flat), whiten, *everything)
        results.add("moons", name, SIZES, p[:count].reshape(len(SIZES), TASKS, 2, -1), new.y_test, found)
        for (kind, other), part in zip(others.items(), np.split(np.asarray(p[count:]), len(others)), strict=True):
            results.add(kind, name, FEW, part.reshape(len(FEW), TASKS, 2, -1), other.y_test)
    networks = informative.FITS[kept["mixture"]](flat).sample((2, 20 * len(flat)), seed=key_mixture)
    plain = hierarchical.labelled(new.x_train, new.y_train)
    results.add("moons", "mixture", SIZES, *_scored(informative.weigh_tasks(networks, plain, new.x_test, SIZES), new))
    return kept


def _scored(found, new):
    return found[0], new.y_test, found[1]


def sources(key, results):
    """The sources' own tasks as training tasks: what the page computes again."""
    key_new, key_group, *_ = jax.random.split(key, 5)  # as `informative.sources`
    key_w, key_chains = jax.random.split(jax.random.fold_in(key, 7))
    new = data.rotated_moons(key_new, TASKS, 50, informative.SETTINGS["num_test"])
    w, check = fitted(key_w, informative.fit_group(key_group, data.source_moons())[0])
    flat = w.reshape(-1, SIZE)
    p, found = informative.sample_units(
        key_chains, priors.fit_normal(flat), priors.whiten(flat), *informative.units(new, FEW)
    )
    p = p.reshape(len(FEW), TASKS, 2, -1)
    results.add("moons, sources", "one normal", FEW, p, new.y_test, {**found, "group": check})


def main():
    results, fits = informative.Results(), []
    root = jax.random.key(SETTINGS["seed"])
    sources(jax.random.fold_in(root, 99), results)
    for key in jax.random.split(root, SETTINGS["num_redraws"]):
        fits.append(redraw(key, results))
    rows = [{"tasks": tasks, "name": name, **kept} for (tasks, name), kept in results.items()]
    rows.append({"tasks": "training", "name": "fits", "sizes": [], "scores": fits, "checks": []})
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
