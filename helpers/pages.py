"""What a page shows elsewhere than under the cell that makes it.

A figure stands where its caption is, and a number in the middle of a sentence.

    pages.glue("fig-moons", fig)
    pages.glue("accuracy", "89.7", display=False)
"""

from helpers import progress

import io
from typing import Any

from IPython.core.formatters import format_display_data
from IPython.display import display as show

GLUE_PREFIX = (
    "application/papermill.record/"  # where MyST-NB looks for what is not seen under its cell
)
DOTS_PER_INCH = 144  # of the pictures for whoever cannot show vectors


def glue(name: str, value: Any, display: bool = True) -> None:
    """Let the page show a figure or a text by its name, in the form in which MyST-NB stores it.

    A figure, which is a ``value`` with Matplotlib's ``savefig``, gets a PNG beside its vector form.
    Without ``display`` nothing is seen under the cell, and nothing is done where a reader runs it.
    """
    if progress.reader() and not display:
        return
    forms, about = format_display_data(value)
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=DOTS_PER_INCH, bbox_inches="tight")
        forms["image/png"] = picture.getvalue()
    prefix = "" if display else GLUE_PREFIX
    about["scrapbook"] = {"name": name, "mime_prefix": prefix}
    show({f"{prefix}{kind}": data for kind, data in forms.items()}, raw=True, metadata=about)
