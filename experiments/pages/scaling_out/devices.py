"""Rows of posteriors, and of the devices whose chains began with them; nothing of JAX is imported,
so that whoever joins them leaves a GPU alone.
"""

from collections.abc import Iterable, Sequence

import numpy as np

FOUND = ("ess_a_gradient", "rhat", "mean_steps")  # of a posterior, in its row


def joined(
    posteriors: Sequence[dict], stored: Iterable[dict], measured: Iterable[dict] = ()
) -> list[dict]:
    """Return posteriors, each with a "name", then devices, each a "device": the stored ones, or
    what was measured of the same ones since.

    ValueError: the stored devices began with other posteriors.
    """
    rows = [*stored, *measured]
    before = {row["name"]: row for row in rows if "name" in row}
    for row in posteriors:
        known = before.get(row["name"], row)
        if not np.allclose(*([one[part] for part in FOUND] for one in (row, known)), rtol=1e-3):
            raise ValueError(f"given {row}, expected {known}, with which stored devices began")
    return [*posteriors, *{row["device"]: row for row in rows if "device" in row}.values()]
