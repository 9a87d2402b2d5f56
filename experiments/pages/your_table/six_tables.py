"""A line or a network? Six public tables, by the calls of the page as a reader makes them.

Each model is asked for the log density of outcomes that it has not seen: of rows, by five fits
without a fifth of them each, and of whole groups where a new group is a question of the table. All
models of a table have the same parts, default priors, and one size of network, that of the page.

Lengths were set by nothing but whether trial runs of networks mixed. What its verdict refuses is
run once more, with shorter steps and twice as long, a rule that was added after three models of a
first set of runs were refused; what is refused then is not compared. Fixed before any run:
differences are to the straight line with a level a group, summed; their 95 % intervals are
Student's over groups, or over rows where there are fewer than ten groups.
"""

from helpers import common, networks

import time

import jax
import numpy as np
import scipy.stats

import tables
from experiments.problems.public_tables import TABLES
from tables import comparisons, formulas

SETTINGS = {
    "seed": 3110,
    "hidden": [5],
    "pieces": 3,  # of a spline
    "lengths": {"num_warmup": 600, "num_samples": 1000, "target_acceptance": 0.95},
    "again": {"num_warmup": 1200, "num_samples": 2000, "target_acceptance": 0.99},
    "parts": 5,
    "fewest_groups": 10,  # for intervals over groups
}
LINE, SLOPES, SPLINES = "line", "line, slopes a group", "splines"
NETWORK, OWN = "network", "network, weights a group"
ARMS = (LINE, SLOPES, SPLINES, NETWORK, OWN)


def units():
    """A model of one table each, those that take longest first."""
    return {
        f"{name}: {arm}": {"table": name, "arm": arm}
        for arm in reversed(ARMS)
        for name, table in reversed(TABLES.items())
        if table.slopes or arm not in (SLOPES, OWN)
    }


SMALL = {"table": "sleepstudy", "arm": LINE}


def formula(table, arm):
    """Return the formula of a model."""
    bent = [f"cr({one}, df={SETTINGS['pieces']}, constraints='center')" for one in table.curved]
    columns = (*table.plain, *(bent if arm == SPLINES else table.curved))
    own = {SLOPES: table.slopes, OWN: "network"}.get(arm, "1")
    return f"{table.outcome} ~ {' + '.join(columns)} + ({own} | {table.group}){table.others}"


def unit(table, arm):
    """Fit one model, then without each part of rows, and of groups."""
    of, name = TABLES[table], table
    frame = of.read()
    network = networks.MLP(hidden=tuple(SETTINGS["hidden"]), use_bias=True)
    made = tables.model(
        formula(of, arm),
        frame,
        family=of.family,
        network=network if arm in (NETWORK, OWN) else None,
        **({"trials": of.trials} if of.trials else {}),
    )
    group, _ = formulas.groups((of.group,), made.rows)
    parts = {"rows": np.arange(len(frame))} | ({"groups": group} if of.is_new else {})
    key_parts = common.key(SETTINGS["seed"], "parts", name)
    key_fit, *keys = jax.random.split(common.key(SETTINGS["seed"], name, arm), 3)
    begun = time.perf_counter()
    for lengths in ("lengths", "again"):
        fit = tables.fit(jax.random.fold_in(key_fit, len(lengths)), made, **SETTINGS[lengths])
        if fit.check.ok:
            break
    found = {"seconds": time.perf_counter() - begun, "mixed": fit.check.ok}
    found |= {"draws": int(fit.data.posterior.sizes["draw"]), "why_not": [*fit.check.reasons]}
    for key, (what, of_row) in zip(keys, parts.items(), strict=False):
        part = comparisons.parts_of(key_parts, of_row, SETTINGS["parts"])
        left = comparisons.left_out(key, fit, part)
        found["mixed"] &= left.check.ok
        found["why_not"] += left.check.reasons
        found |= {what: left.density.round(4).tolist()}
        found |= {f"elpd_{what}": float(left.density.sum())}
        found |= {f"elpd_{what}_error": monte_carlo_error(left, part)}
    return found | {"group": group.tolist()}


def monte_carlo_error(left, part):
    """Return the error of the summed log density, from how chains differ within each part."""
    each = [left.by_chain[:, part == i].sum(axis=1).var(ddof=1) for i in np.unique(part)]
    return float(np.sqrt(np.sum(each) / len(left.by_chain)))


def rows(scored):
    """A row a table, model and question: its log density, and how much more than that of lines."""
    found = []
    for name, one in scored.items():
        table, arm = name.split(": ")
        for what in ("rows", "groups"):
            if what not in one:
                continue
            row = {"table": table, "arm": arm, "of": what, "num_rows": len(one["rows"])}
            row |= {"num_groups": len(set(one["group"])), "elpd": one[f"elpd_{what}"]}
            row |= {"elpd_error": one[f"elpd_{what}_error"]}
            row |= {key: one[key] for key in ("mixed", "why_not", "draws", "seconds")}
            for line in (LINE, SLOPES):
                if (of_line := scored.get(f"{table}: {line}")) is not None:
                    apart = np.subtract(one[what], of_line[what])
                    row |= {f"more than {line}": more(apart, np.array(one["group"]))}
            found.append(row)
    return found


def more(apart, group):
    """Return the sum of differences by row, and its 95 % interval."""
    if group.max() + 1 >= SETTINGS["fewest_groups"]:
        apart = np.bincount(group, apart)
    num = len(apart)
    half = scipy.stats.t.ppf(0.975, num - 1) * np.sqrt(num) * apart.std(ddof=1)
    total = float(apart.sum())
    return {"sum": total, "low": total - float(half), "high": total + float(half)}
