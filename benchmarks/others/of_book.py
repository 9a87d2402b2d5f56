"""The book's density of the hierarchical posterior, for other libraries' samplers: of one vector of
763 numbers, whose parts are those of ``posterior``.
"""

from helpers import densities, hierarchical, networks

from benchmarks.others.posterior import split


def density_of(x, y, double):
    """Return the book's log density of a vector, in double precision or in single."""
    seen = densities.observe(x, y)
    if double:
        seen = seen._replace(x=seen.x.astype(float), weight=seen.weight.astype(float))
    density = hierarchical.log_density(networks.MLP())
    return lambda vector: density(position(split(vector)), seen)


def position(parts):
    """Return the parts of a position as the book's density takes them."""
    layers = [f"Dense_{i}" for i in range(3)]
    kernels = {
        name: {layer: {"kernel": parts[f"{name}_{i}"]} for i, layer in enumerate(layers)}
        for name in ("mean", "offset")
    }
    return {**kernels, "log_sd": {layer: parts["log_sd"][i] for i, layer in enumerate(layers)}}
