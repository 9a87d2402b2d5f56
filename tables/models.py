"""What a formula and a table say: ``model("invest ~ value + (value | firm)", frame)``.

``written`` puts it into NumPyro's words, ``encode`` turns further rows into its arrays.
"""

from helpers import networks

from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
from formulaic import ModelSpec
from jaxtyping import Float

from tables import defaults, exact, families, formulas, sides
from tables.formulas import Term

OPTIONS = ("trials", "exposure", "offset", "weights", "censored")  # each names a column


class Part(NamedTuple):
    """A term of groups, as training rows have it."""

    term: Term
    spec: ModelSpec | None  # None: weights of a network
    columns: tuple[str, ...]  # what differs by group
    # where a level is taken: 0, or their mean where they may correlate and are never 0
    center: Float[np.ndarray, " column"]
    levels: list[str]
    drawn: str = "offset"  # non-centred; "effect": as such; "level": about the common coefficients

    def sd_of(self, column: str) -> str:
        """Return the name of the standard deviation of a column between groups."""
        name = f"sd_{self.term.name}"
        return name if name.endswith(f": {column}") else f"{name}[{column}]"


class Model(NamedTuple):
    """A formula and what training rows taught; what is of the rows themselves is in ``data``."""

    formula: str
    family: str
    outcome: str
    common: ModelSpec
    columns: tuple[str, ...]  # of coefficients
    center: Float[np.ndarray, " column"]  # their means; 0 without an intercept
    parts: tuple[Part, ...]
    noise: ModelSpec | None
    classes: list[str]
    spread: tuple[float, float]  # mean and standard deviation of the outcome behind its link
    network: networks.MLP | None
    inputs: tuple[list[str], Any, Any]  # of the network: columns, their means and deviations
    priors: dict[str, dist.Distribution]  # by parameter, in the table's units
    options: dict[str, str]  # by option, its column
    fills: dict  # by column, what a missing value becomes
    rows: pd.DataFrame  # the training rows, their columns of the model
    data: dict
    exact: bool  # whether effects of groups are integrated out
    noisy: bool = False  # whether a second output of the network is added to the log of the noise

    def __repr__(self) -> str:
        return f"Model({self.formula!r}, family={self.family!r}, {len(self.rows)} rows)"

    @property
    def factors(self) -> list[str]:
        """Columns by whose values rows are grouped, once for each term that has them."""
        return [name for part in self.parts for name in part.term.factors]

    @property
    def num_outputs(self) -> int:
        """How many numbers a row's distribution is made of: one, or one a class but the first."""
        return max(1, len(self.classes) - 1) if self.family == "categorical" else 1


def model(
    formula: str,
    frame: pd.DataFrame,
    *,
    family: str = "normal",
    network: networks.MLP | None = None,
    priors: dict | None = None,
    noise: str | None = None,
    missing: str = "refuse",
    **options: str,
) -> Model:
    """Return the model of a table that a formula asks for.

    Default priors do not depend on how many columns there are. A coefficient is normal about 0, its
    scale 2.5 standard deviations of the outcome over one of the column; the intercept, at the
    columns' means, about the outcome's mean. Standard deviations of groups and of the noise are
    half normal, their scale one such ratio. Behind a log or logit link the outcome's standard
    deviation counts for 1, in groups for 2.5. A network's last layer has a half normal scale of
    2.5, behind a logit of 10, so that classes may change abruptly. ``priors`` prints all.

    Args:
        formula: ``outcome ~ x + (x | group)``: formulaic's language, lme4's parentheses; a dot is
            every other column.
        frame: the training rows.
        family: of the outcome: normal, student t, bernoulli, binomial, categorical, ordinal,
            poisson, negative binomial, either of them zero-inflated, gamma, beta.
        network: of the common columns, instead of a line. ``(1 | group)`` then adds a level to its
            output, ``(head | group)`` gives each group a last layer, ``(network | group)`` weights
            of all layers; ``(separate | group)`` a network that shares nothing but how large
            weights are.
        priors: NumPyro distributions, in the table's units, by the names that ``priors`` prints; a
            ``Delta`` fixes a parameter.
        noise: right side of the log of the noise, such as ``"x"``, normal or Student t; "network"
            for a second output of the network.
        missing: "refuse", or "median": a missing number becomes the median, a text the most
            frequent, here and later.
        options: columns by what they are: ``trials`` of a binomial outcome; ``exposure``, by which
            a rate is multiplied; ``offset``, added behind the link; ``weights``, powers of a row's
            likelihood; ``censored``, 1 where the outcome is more than is written, -1 where less.

    ValueError: whatever does not fit; it names column, row and remedy.
    """
    outcome, right, terms = formulas.parse(formula)
    _check(family, network, noise, missing, options, terms)
    labels = [str(label) for label in getattr(frame, "columns", ())]
    spoken_for = {outcome, *options.values(), *(name for term in terms for name in term.factors)}
    right = sides.written_out(right, [name for name in labels if name not in spoken_for])
    noisy, noise = noise == "network", None if noise == "network" else noise
    others = [noise or "1", *(t.inner for t in terms if t.inner not in formulas.WAYS)]
    for other in others:
        sides.refuse_dot(other)
    inputs = sorted({name for side in (right, *others) for name in sides.variables(side, labels)})
    if outcome in inputs:
        raise ValueError(f"formula: given {formula!r}, expected {outcome!r} on the left alone")
    fills = formulas.fills(frame, inputs) if missing == "median" else {}
    factors = [name for term in terms for name in term.factors]
    needed = dict.fromkeys([*inputs, *factors, *options.values(), outcome])
    rows = formulas.clean(frame, [*needed], fills)
    for name in (*inputs, outcome):
        if rows[name].nunique() < 2:
            raise ValueError(
                f"{name}: given {rows[name].iloc[0]!r} in all rows, expected several values"
            )
    y, classes = families.outcome(family, outcome, rows[outcome])
    x, common = formulas.columns(right, rows)
    names = [name for name in common.column_names if family != "ordinal" or name != "Intercept"]
    x = x[:, [common.column_names.index(name) for name in names]]
    formulas.refuse_constant(names, x)
    nets = [name for name in names if name != "Intercept"] if network is not None else []
    at = [names.index(name) for name in nets]
    kept = [i for i in range(len(names)) if i not in at]
    center = np.where("Intercept" in common.column_names, x.mean(axis=0), 0.0) * [
        n != "Intercept" for n in names
    ]
    made = Model(
        formula, family, outcome, common, tuple(names[i] for i in kept), center[kept],
        tuple(_part(term, rows) for term in terms),
        _noise(noise, rows) if noise else None,
        classes, (0.0, 1.0), network, (nets, x[:, at].mean(axis=0), x[:, at].std(axis=0)),
        {}, options, fills, rows, {}, False, noisy,
    )  # fmt: skip
    if network is not None:
        made = made._replace(network=network.clone(num_outputs=made.num_outputs + noisy))
    made = made._replace(data=encode(made, rows))
    made = made._replace(spread=defaults.spread(made))
    made = made._replace(priors=defaults.with_given(made, priors or {}))
    if not exact.applies(made):
        return made
    return made._replace(exact=True, data=made.data | {"exact": exact.sums(made, np.ones(len(y)))})


def encode(made: Model, frame: pd.DataFrame) -> dict:
    """Return the arrays of rows as training rows taught, in float64: ``x`` [row, column], ``z`` and
    ``group`` by term, ``inputs`` of a network, ``offset`` and other options, ``y`` if it is there.

    A group that training rows did not have has an index after theirs.

    ValueError: a column that is absent, missing values, a level of a text that training rows did
        not have.
    """
    names = [name for name in made.rows if name != made.outcome]
    there = [made.outcome] if made.outcome in map(str, getattr(frame, "columns", [])) else []
    rows = formulas.clean(frame, [*names, *there], made.fills)
    formulas.same_kinds(rows[[name for name in names if name not in made.factors]], made.rows)
    x, spec = formulas.columns(made.common, rows)
    columns = {name: x[:, [spec.column_names.index(name)]] for name in spec.column_names}
    none = np.zeros((len(rows), 0))
    data = {"x": np.hstack([none, *(columns[name] for name in made.columns)])}
    if made.network is not None:
        inputs, mean, sd = made.inputs
        data["inputs"] = (np.hstack([columns[name] for name in inputs]) - mean) / sd
    data["z"] = tuple(
        none if part.spec is None else formulas.columns(part.spec, rows)[0] for part in made.parts
    )
    data["group"] = tuple(
        np.asarray(formulas.groups(part.term.factors, rows, part.levels)[0], np.int32)
        for part in made.parts
    )
    if made.noise is not None:
        data["noise"] = formulas.columns(made.noise, rows)[0]
    offset = np.zeros(len(rows))
    for option, name in made.options.items():
        values = families.option(option, name, rows[name])
        if option in ("offset", "exposure"):
            offset = offset + (np.log(values) if option == "exposure" else values)
        else:
            data[option] = values
    data["offset"] = offset
    if there:
        data["y"] = families.outcome(made.family, made.outcome, rows[made.outcome], made.classes)[0]
    if "y" in data and "trials" in data and (data["y"] > data["trials"]).any():
        bad = np.flatnonzero(data["y"] > data["trials"])[0]
        raise ValueError(
            f"{made.outcome}: given {data['y'][bad]:g} in row {bad}, expected at most "
            f"{made.options['trials']}, {data['trials'][bad]:g}"
        )
    return data


def some_rows(data: dict, at: Any = slice(None)) -> dict:
    """Return the arrays of some rows of what ``encode`` returned, by index; of all by default."""
    return {
        name: jax.tree.map(lambda leaf: leaf[at], part)
        for name, part in data.items()
        if name != "exact"
    }


def _check(family, network, noise, missing, options, terms):
    """Check everything of ``model`` that can be told without the frame."""
    if family not in families.FAMILIES:
        raise ValueError(f"family: given {family!r}, expected one of {[*families.FAMILIES]}")
    if missing not in ("refuse", "median"):
        raise ValueError(f"missing: given {missing!r}, expected 'refuse' or 'median'")
    if network is not None and not isinstance(network, networks.MLP):
        raise ValueError(f"network: given {network!r}, expected a networks.MLP")
    if odd := [name for name, column in options.items() if not isinstance(column, str)]:
        raise ValueError(f"{odd[0]}: given {options[odd[0]]!r}, expected the name of a column")
    allowed = {*OPTIONS} - ({"trials"} if family != "binomial" else set())
    allowed -= {"exposure"} if families.FAMILIES[family].link != "log" else set()
    allowed -= {"censored"} if family not in families.CENSORED else set()
    if odd := {*options} - allowed:
        raise ValueError(f"options: given {sorted(odd)}, expected of family {family!r} {allowed}")
    if family == "binomial" and "trials" not in options:
        raise ValueError("trials: given none, expected the column of a binomial outcome's trials")
    if noise is not None and "noise" not in families.FAMILIES[family].extra:
        raise ValueError(f"noise: given {noise!r}, expected None of family {family!r}")
    if network is None and (of := [t.inner for t in terms if t.inner in formulas.WAYS]):
        raise ValueError(f"formula: given ({of[0]} | ...), expected network=networks.MLP(...), too")
    if network is None and noise == "network":
        raise ValueError("noise: given 'network', expected network=networks.MLP(...), too")
    taken = {"coefficient", "column", "chain", "draw", *families.FAMILIES[family].extra}
    taken |= {"class"} if family == "categorical" else set()
    taken |= {"network", "leaf"} if network is not None else set()
    if odd := [term.name for term in terms if term.name in taken]:
        raise ValueError(
            f"formula: given groups called {odd[0]!r}, a name of a fit's own: rename the column"
        )
    ways = [t.inner for t in terms if t.inner in formulas.WAYS]
    if "separate" in ways and len(ways) > 1:
        raise ValueError(f"formula: given {ways}, expected 'separate' alone: it shares no weights")


def _part(term, rows):
    _, levels = formulas.groups(term.factors, rows)
    if len(levels) < 2:
        raise ValueError(f"{term.name}: given the one group {levels[0]!r}, expected several")
    if term.inner in formulas.WAYS:
        return Part(term, None, (), np.zeros(0), levels)
    z, spec = formulas.columns(term.inner, rows)
    names = spec.column_names
    formulas.refuse_constant(names, z)
    correlated = term.correlated and "Intercept" in names and len(names) > 1
    beyond = (z.min(axis=0) > 0) | (z.max(axis=0) < 0)  # a level there would be a guess
    center = np.where(beyond, z.mean(axis=0), 0) * [correlated and n != "Intercept" for n in names]
    return Part(term, spec, tuple(names), center, levels)


def _noise(right, rows):
    """Return the spec of the columns that the log of the noise depends on."""
    array, spec = formulas.columns(right, rows)
    formulas.refuse_constant(spec.column_names, array)
    return spec
