"""A table by ``tables``, at its defaults: four chains, a pilot of 100 draws, 1000 draws."""

import helpers  # noqa: F401, whose flags JAX reads when it starts

import jax
import numpy as np

import tables
from benchmarks.tables import clock
from benchmarks.tables.data import TABLES


def named(fit: tables.fits.Fitted) -> dict[str, np.ndarray]:
    """Return draws [chain, draw] of coefficients, groups' standard deviations and noise."""
    found = {}
    for name, values in fit.data.posterior.items():
        if name.startswith(("effect_", "correlation_")):
            continue
        if values.ndim == 2:
            found[name] = values.values
            continue
        axis = values.dims[2]
        for i, label in enumerate(values[axis].values):
            of = label if name == "coefficient" else f"{name.split(': ')[0]}[{label}]"
            found[str(of)] = values.values[..., i]
    return found


def main():
    """Sample once."""
    asked = clock.asked()
    table = TABLES[asked["table"]]
    frame, options = table.read(), {"trials": table.trials} if table.trials else {}
    begun = clock.begin()
    model = tables.model(table.formula, frame, family=table.family, **options)
    fit = tables.fit(jax.random.key(asked["seed"]), model, progress=False)
    clock.tell(begun, named(fit), fit.data.sample_stats["diverging"].values, asked["folder"])


if __name__ == "__main__":
    main()
