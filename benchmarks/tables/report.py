"""What the runs say, as tables in Markdown."""

import numpy as np

COLUMNS = (
    "table", "by", "CPU s", "compiling", "worst effective size", "of", "diverging",
    "effective draws a CPU s", "times Bambi's",
)  # fmt: skip


def worst(run: dict) -> tuple[float, str]:
    """Return the smallest effective size of a run, and of which parameter it is."""
    return min((of["ess"], name) for name, of in run["parameters"].items())


def rate(run: dict) -> float:
    """Return the effective draws of the worst parameter a processor second."""
    return worst(run)[0] / run["cpu"]


def line(run: dict) -> str:
    """Return one run in words."""
    ess, name = worst(run)
    return (
        f"{run['table']}, {run['program']}, seed {run['seed']}: {run['cpu']:.1f} CPU s, compiling "
        f"{run['compiling']:.1f}, {ess:.0f} of {name}, {run['diverging']} diverging"
    )


def of(stored: dict) -> str:
    """Return the tables of speed and of answers."""
    speed = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    answers = ["| table | largest difference, sd | of | expected error | sizes of errors |"]
    answers += ["|---" * 5 + "|"]
    ratios = []
    for name in dict.fromkeys(run["table"] for run in stored["runs"]):
        ours, bambi = (
            [run for run in stored["runs"] if (run["table"], run["program"]) == (name, program)]
            for program in ("ours", "with_bambi")
        )
        each = [rate(a) / rate(b) for a, b in zip(ours, bambi, strict=True)]
        ratios.append(np.median(each))
        said = f"{np.median(each):.2g} ({min(each):.2g} to {max(each):.2g})"
        speed += [_speed(name, "ours", ours, said), _speed(name, "Bambi", bambi, "")]
        answers.append(_answers(name, ours, bambi))
    whole = f"Median of the tables' ratios: {np.median(ratios):.2g}; "
    whole += f"geometric mean: {np.exp(np.mean(np.log(ratios))):.2g}."
    return "\n".join([*speed, "", whole, "", *answers])


def _speed(name, by, runs, said):
    """Return a row of the table of speed: medians over the seeds."""
    ess, of = sorted(worst(run) for run in runs)[len(runs) // 2]
    cpu, compiling, diverging = (
        np.median([run[key] for run in runs]) for key in ("cpu", "compiling", "diverging")
    )
    of_rate = np.median([rate(run) for run in runs])
    parts = (name, by, f"{cpu:.1f}", f"{compiling:.1f}", f"{ess:.0f}", f"`{of}`")
    return "| " + " | ".join((*parts, f"{diverging:.0f}", f"{of_rate:.3g}", said)) + " |"


def _answers(name, ours, bambi):
    """Return a row of the table of answers: means of all seeds' draws, in units of their standard
    deviation.
    """
    found = {}
    for key in ours[0]["parameters"]:
        a, b = ([run["parameters"][key] for run in runs] for runs in (ours, bambi))
        sd = np.mean([one["sd"] for one in (*a, *b)])
        apart = abs(np.mean([one["mean"] for one in a]) - np.mean([one["mean"] for one in b])) / sd
        error = sum(1 / sum(one["ess"] for one in of) for of in (a, b)) ** 0.5
        found[key] = apart, error
    most = max(found, key=lambda key: found[key][0])
    apart, error = found[most]
    times = max(found.values(), key=lambda one: one[0] / one[1])
    return f"| {name} | {apart:.3f} | `{most}` | {error:.3f} | {times[0] / times[1]:.1f} |"
