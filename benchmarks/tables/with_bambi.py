"""A table by Bambi with NumPyro's NUTS, at its defaults: four chains, warm-up of 1000 steps, 1000
draws. The priors are those of ``tables``.
"""

import bambi
import jax
import numpy as np
import numpyro  # noqa: F401, which is imported before the clock starts, as all else
import pymc as pm
import pymc.sampling.jax

from benchmarks.tables import clock
from benchmarks.tables.data import TABLES

FAMILIES = {"normal": "gaussian", "negative binomial": "negativebinomial"}
NAMES = {"sigma": "noise", "alpha_inverse": "dispersion"}


def normal(**arguments):
    """Return Bambi's normal prior, its numbers as they are."""
    return bambi.Prior("Normal", auto_scale=False, **arguments)


def half_normal(scale):
    """Return Bambi's half normal prior, its scale as it is."""
    return bambi.Prior("HalfNormal", auto_scale=False, sigma=scale)


def inverse(scale):
    """Return a prior whose inverse is half normal."""

    def made(name, scale, **_):
        return pm.Deterministic(name, 1 / pm.HalfNormal(f"{name}_inverse", scale))

    return bambi.Prior("Inverse", auto_scale=False, dist=made, scale=scale)


def priors(of: dict[str, tuple[float, float]]) -> dict[str, bambi.Prior]:
    """Return the priors by Bambi's names, of location and scale by those of ``tables``."""
    found, columns = {}, {}
    for name, (loc, scale) in of.items():
        if name == "noise":
            found["sigma"] = half_normal(scale)
        elif name == "dispersion":
            found["alpha"] = inverse(scale)
        elif name.startswith("sd_"):
            group, column = name[3:-1].split("[", 1)
            column = "1" if column == "Intercept" else column
            found[f"{column}|{group}"] = normal(mu=0.0, sigma=half_normal(scale))
        else:
            columns.setdefault(name.split("[")[0], []).append((loc, scale))
    for term, several in columns.items():
        loc, scale = np.array(several).T if len(several) > 1 else several[0]
        found[term] = normal(mu=loc, sigma=scale)
    return found


def named(posterior) -> dict[str, np.ndarray]:
    """Return draws [chain, draw] by the names that ``tables`` has for them."""
    found = {}
    for name, values in posterior.items():
        if name.endswith("_sigma") and "|" in name:
            column, group = name.removesuffix("_sigma").split("|")
            found[f"sd_{group}[{'Intercept' if column == '1' else column}]"] = values.values
        elif "|" in name:
            continue
        elif values.ndim == 2:
            found[NAMES.get(name, name)] = values.values
        else:
            for i, label in enumerate(values[values.dims[2]].values):
                found[f"{name}[T.{label}]"] = values.values[..., i]
    return found


def main():
    """Sample once."""
    asked = clock.asked()
    table = TABLES[asked["table"]]
    frame, formula = table.read(), table.formula.replace("||", "|")
    if table.trials:
        outcome, right = formula.split("~")
        formula = f"p({outcome.strip()}, {table.trials}) ~{right}"
    begun = clock.begin()
    family = FAMILIES.get(table.family, table.family)
    model = bambi.Model(formula, frame, family=family, priors=priors(asked["priors"]))
    fit = model.fit(
        draws=1000,
        chains=4,
        inference_method="numpyro",
        random_seed=asked["seed"],
        progressbar=False,
    )
    assert jax.config.jax_enable_x64  # as ours
    clock.tell(begun, named(fit.posterior), fit.sample_stats["diverging"].values, asked["folder"])


if __name__ == "__main__":
    main()
