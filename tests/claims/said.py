"""Ties a test to the sentences of a page that it holds.

@says("flat-measured", "One network that cannot see the task is as poor as claimed")
def test_one_network_for_all_tasks_is_poor(): ...
"""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Claim(NamedTuple):
    """Assertions on stored numbers, the pages that say them, and the share of moves of the numbers
    in which they may fall.
    """

    holds: Callable[[], None]
    pages: tuple[str, ...]
    falls: float


CLAIMS: dict[str, Claim] = {}  # by module and name


def says(page: str, *sentences: str, falls: float = 0.0) -> Callable:
    """Tie a test to sentences of a page, a file of ``book/`` or ``README``.

    A sentence stands here as in the page's source, or the part of it that says what is tested;
    line ends and blanks do not count. ``falls`` is the share of moves of the stored numbers, each
    by normal errors of its own, in which the test may fail; above 0 it needs a comment.

    ValueError: there are no sentences, or the test takes arguments.
    """

    def tie(test):
        holds = inspect.unwrap(test)
        if not sentences or holds.__code__.co_argcount:
            raise ValueError(f"{test.__name__}: expected sentences, and a test without arguments")

        @functools.wraps(test)
        def tied():
            for sentence in sentences:
                assert on_page(page, sentence), f"{page} no longer says: {sentence}"
            test()

        name = f"{holds.__module__}.{holds.__name__}"
        one = CLAIMS.get(name, Claim(holds, (), 0.0))
        CLAIMS[name] = Claim(holds, (*one.pages, page.replace("-", "_")), max(one.falls, falls))
        return tied

    return tie


def on_page(page: str, sentence: str) -> bool:
    """Whether a page's source has a sentence, line ends and blanks apart."""
    path = ROOT / ("README.md" if page == "README" else f"book/{page}.md")
    return " ".join(sentence.split()) in " ".join(path.read_text().split())
