"""The fitted priors of ``transfer`` again, on draws aligned to their own mean instead of to one
draw.

The same redraws, group draws, new tasks and labels, all by the same keys of names; only the
reference of the alignment differs, and with it every fit. So scores pair with those of
``transfer``.
"""

from experiments.pages.informative_priors import transfer
from experiments.problems import new_tasks

SETTINGS = {
    **transfer.SETTINGS,
    "reference": "their mean",
    "arms": ["a normal a layer", "one normal"],
}
unit = transfer.unit
score = transfer.score
rows = transfer.rows


def units():
    """An arm on one kind of tasks in one redraw each."""
    new, few, arms = SETTINGS["sizes"], SETTINGS["joint_sizes"], SETTINGS["arms"]
    wanted = [("moons", name, new) for name in (*arms, "mixture")] + [("training", "fits", [])]
    wanted += [(kind, name, few) for kind in new_tasks.ELSEWHERE for name in arms]
    places = [(*one, i) for i in range(SETTINGS["num_redraws"]) for one in wanted]
    places.append(("moons, sources", "one normal", few, "sources"))
    return {
        f"{kind}: {name}, {i}": setting(kind, name, sizes, i) for kind, name, sizes, i in places
    }


def setting(kind, name, sizes, redraw):
    """Return the setting of a unit of ``transfer`` with the other reference."""
    return transfer.setting(kind, name, sizes, redraw, SETTINGS["reference"])


SMALL = setting("training", "fits", [], 0) | {"group_draws": 250}
