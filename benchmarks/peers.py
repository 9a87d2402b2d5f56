"""The book's sampler, NumPyro's and BlackJAX's on posteriors whose answers are known, anew.

What ``experiments/pages/are_the_samplers_right/peers.py`` stores, run by run, as a table. Ends with
1 if the check accepts a run that is wrong, whoever drew it, or refuses one of the book's sampler on
an easy posterior. What no check of draws can see (``peers.BEYOND``) it only shows.
"""

import argparse
import sys

import numpy as np

from experiments.methods import peer_samplers
from experiments.pages.are_the_samplers_right import peers as experiment
from experiments.problems import peers

HEADER = (
    f"{'posterior':40} {'seed':>4} {'sampler':8} {'z mean':>7} {'z sd':>6} {'z qu.':>6} "
    f"{'ESS qu.':>7} {'bulk':>6} {'tail':>6} {'grads/ESS':>9} {'warm-up':>8} {'s':>6} {'div':>4}"
    "  verdict"
)


def arguments():
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", nargs="+", choices=peers.names(), default=peers.names())
    known = tuple(peer_samplers.SAMPLERS)
    parser.add_argument("--samplers", nargs="+", choices=known, default=known)
    parser.add_argument("--seeds", type=int, nargs="+", help="those of the stored result")
    return parser.parse_args()


def settings(asked):
    """Yield what the stored result is made of, as far as it is asked for, or with other seeds."""
    for setting in experiment.units().values():
        if setting["name"] in asked.names and setting["sampler"] in asked.samplers:
            if not asked.seeds:
                yield setting
            elif setting["seed"] == 0:
                yield from (setting | {"seed": seed} for seed in asked.seeds)


def line(row):
    """Return a row of the table."""
    begin = f"{row['posterior']:40} {row['seed']:4} {row['sampler']:8} "
    if "stopped" in row:
        return f"{begin}refused: {row['stopped']}"
    far = row["distances"]
    said = "accepted" if row["accepted"] else "refused"
    asked = f"; {row['fault'].upper()}" if row["fault"] else ""
    return (
        f"{begin}{far['mean']:7.1f} {far['sd']:6.1f} {far['quantiles']:6.1f} "
        f"{row['ess_quantities']:7.0f} {row['ess_bulk']:6.0f} {row['ess_tail']:6.0f} "
        f"{row['gradients'] / row['ess_bulk']:9.1f} {row['warmup_gradients']:8.0f} "
        f"{row['seconds']:6.1f} {row['divergences']:4}  {said}{asked}"
    )


def summary(rows, samplers):
    """Yield a line a posterior: how many runs were accepted, and gradients an effective draw, of
    the quantities with the log density and of the quantities alone.
    """
    begin = "medians over seeds: accepted, grads/ESS,"
    yield f"\n{begin:40}" + "".join(f"{name:>28}" for name in samplers)
    yield "grads/ESS of the quantities alone"
    for name in dict.fromkeys(row["posterior"] for row in rows):
        cells = []
        for sampler in samplers:
            of = [row for row in rows if (row["posterior"], row["sampler"]) == (name, sampler)]
            each = [
                [row["gradients"] / row[ess] for ess in ("ess_bulk", "ess_quantities")]
                if "gradients" in row
                else [np.inf, np.inf]
                for row in of
            ]
            both, alone = np.median(each, axis=0)
            accepted = sum(row["accepted"] for row in of)
            cells.append(f"{accepted:>6} of {len(of)} {both:8.1f} {alone:8.1f}")
        yield f"{name:40} " + " ".join(cells)


def main():
    """Run all that is asked for, and return how many verdicts are wrong."""
    asked, rows, faults = arguments(), [], []
    print(HEADER, flush=True)
    for setting in settings(asked):
        row = experiment.score(experiment.unit(**setting), **setting)
        print(line(row), flush=True)
        rows.append(row)
        wrong = row["fault"]
        # that another's sampler did badly is not the check's fault
        if wrong.startswith("accepted") or (wrong and setting["sampler"] == "ours"):
            faults.append(f"{line(row)}: {wrong}")
    print(*summary(rows, asked.samplers), sep="\n")
    print(*[f"wrong: {fault}" for fault in faults] or ["no verdict is wrong"], sep="\n")
    return len(faults)


if __name__ == "__main__":
    sys.exit(main() > 0)
