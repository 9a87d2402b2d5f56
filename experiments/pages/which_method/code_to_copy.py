"""The code to copy of the page ``which-method``, by its situation: A, B, C, D and G."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "book/which-method.md"
if not PAGE.exists():
    raise FileNotFoundError(
        f"{PAGE}: given no such page, expected a checkout, since its code is what is timed here"
    )
RECIPES = dict(
    zip(
        "ABCDG",
        re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.S | re.M),
        strict=True,
    )
)
