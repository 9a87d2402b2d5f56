"""Cells of the notebooks for people: code that may be folded, and pictures."""

from helpers.pages import DOTS_PER_INCH, GLUE_PREFIX

import base64
import io

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell
from PIL import Image

# What the first line of folded code says, where the page does not say it.
LEFT_OUT = "makes what the text and the figures around it show"
SHOWN_ALONE = "code of what is shown below"


def code_cell(cell: nbformat.NotebookNode, solution: str = "") -> nbformat.NotebookNode:
    """Return a code cell for a person: folded where the site folds it or leaves it out, with what
    is to be seen of it.

    The first line of what is folded, which JupyterLab and VS Code show, says what it is.
    """
    tags, prompt = (
        {*cell.metadata.get("tags", [])},
        cell.metadata.get("mystnb", {}).get("code_prompt_show", ""),
    )
    left_out = LEFT_OUT if "remove-cell" in tags else SHOWN_ALONE if "remove-input" in tags else ""
    label = solution or prompt.removeprefix("code: ") or left_out
    made = new_code_cell(
        f"# {label}\n{cell.source}" if label else cell.source, execution_count=cell.execution_count
    )
    if label:
        made.metadata["jupyter"] = {"source_hidden": True}
        if solution or "remove-cell" in tags:
            made.metadata["jupyter"]["outputs_hidden"] = True
    pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
    for output in cell.outputs if "remove-cell" not in tags else []:
        # several are shown below, each with its caption
        if output in pictures and len(pictures) == 1:
            made.outputs.append(shown(output))
        unseen = output.get("name") == "stderr" or any(
            kind.startswith(GLUE_PREFIX) for kind in output.get("data", {})
        )
        if output not in pictures and not unseen and "remove-output" not in tags:
            made.outputs.append(output)
    return made


def shown(output: nbformat.NotebookNode, alt: str = "") -> nbformat.NotebookNode:
    """Return a figure as a picture of the size that it has on the site; not all readers of
    notebooks show vectors.
    """
    picture = output.data["image/png"]
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        size = {
            name: round(96 / DOTS_PER_INCH * value)
            for name, value in (("width", image.width), ("height", image.height))
        }
    about = {"image/png": size | ({"alt": alt} if alt else {})}
    return nbformat.v4.new_output("display_data", data={"image/png": picture}, metadata=about)


def attached(name: str, alt: str, picture: str, text: str) -> nbformat.NotebookNode:
    """Return a cell with a picture (PNG in base64) of its own, and what stands under it."""
    alt = alt.replace("[", "(").replace("]", ")")
    cell = new_markdown_cell(f"![{alt}](attachment:{name}.png)\n\n{text}")
    cell["attachments"] = {f"{name}.png": {"image/png": picture}}
    return cell
