"""What is glued is what MyST-NB finds; a reader's run shows figures and is silent about the
rest.
"""

from helpers import pages, plots

import io

import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from PIL import Image


@pytest.fixture
def fig():
    plots.use_style()
    figure, ax = plt.subplots(figsize=(4, 2))
    ax.plot([0, 1])
    yield figure
    plt.close(figure)


@pytest.fixture(autouse=True)
def shell():
    """IPython's, which publishes what is shown."""
    InteractiveShell.instance()


def glued(name, value, **settings):
    """The outputs of one call."""
    with capture_output() as captured:
        pages.glue(name, value, **settings)
    return captured.outputs


def test_a_text_is_stored_and_not_seen():
    (output,) = glued("accuracy", "89.7", display=False)
    assert output.data == {f"{pages.GLUE_PREFIX}text/plain": "'89.7'"}
    assert output.metadata["scrapbook"] == {"name": "accuracy", "mime_prefix": pages.GLUE_PREFIX}


def test_a_figure_has_a_picture_of_twice_the_inches_that_screens_have(fig):
    (output,) = glued("fig-line", fig)
    assert output.metadata["scrapbook"] == {"name": "fig-line", "mime_prefix": ""}
    with Image.open(io.BytesIO(output.data["image/png"])) as picture:
        assert picture.width / pages.DOTS_PER_INCH == pytest.approx(4, rel=0.1)


def test_for_a_reader_only_figures_are_shown(fig, monkeypatch):
    monkeypatch.setenv("BOOK_READER", "1")
    assert glued("accuracy", "89.7", display=False) == []
    assert len(glued("fig-line", fig)) == 1
