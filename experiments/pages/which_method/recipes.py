"""What the code to copy of the page ``which-method`` takes as it stands, on the sources' data:
seconds of one core.

Of D also whether its chains agree, and the NLL of the sources' own test points.
"""

from helpers import data, diagnostics, metrics
from helpers.common import take

import hashlib
import time

import numpy as np

from experiments.pages.which_method import code_to_copy

SETTINGS = {
    "units": ["A", "C", "DG"],  # G goes on where D ends
    "few": 5,  # labels of the group that is new
    "recipes": {
        name: hashlib.sha256(code.encode()).hexdigest()[:16]
        for name, code in code_to_copy.RECIPES.items()
    },
}
SMALL = {"situations": "DG"}


def units():
    """A situation each, or two of which one needs the other."""
    return {situations: {"situations": situations} for situations in SETTINGS["units"]}


def unit(situations):
    """Run the code of situations in turn; C is of one task, G takes its new points."""
    tasks, seconds = data.source_moons(), {}
    space = {
        "x": np.asarray(tasks.x_train),
        "y": np.asarray(tasks.y_train),
        "x_new": np.asarray(tasks.x_test),
    }
    if situations == "C":
        space = take(space, 0)
    few = slice(SETTINGS["few"])
    space |= {"x_few": np.asarray(tasks.x_test[0, few]), "y_few": np.asarray(tasks.y_test[0, few])}
    found = {}
    for name in situations:
        begin = time.process_time()
        exec(code_to_copy.RECIPES[name], space)
        seconds[name] = time.process_time() - begin
        if name == "D":
            p, y = np.asarray(space["p"]), np.asarray(tasks.y_test)
            found = {
                "rhat_log_sd": diagnostics.summarize(space["fit"].draws["log_sd"]).rhat.max(),
                "nll": metrics.negative_log_likelihood(p.mean(axis=(0, 1)), y),
                "nll_error": diagnostics.nll_error(p, y),
            }
    return {"seconds": seconds} | {name: float(value) for name, value in found.items()}
