"""For a table of one's own: ``tables.model``, ``tables.fit``, and what is asked of a fit.

It stands on ``helpers``, which knows nothing of it. ``formulas`` reads formula and data frame,
``families`` has the outcomes, ``models`` what training rows teach, ``defaults`` the usual priors,
``weights`` those of a network, ``written`` the model in NumPyro's words, ``exact`` normal outcomes
without their effects; ``fits`` samples, and ``forecasts``, ``comparisons`` and ``answers`` answer.
"""

from tables.answers import average, priors, summary
from tables.comparisons import compare
from tables.fits import cost, fit, load
from tables.forecasts import predict, prior_predictive
from tables.models import model

__all__ = [
    "average",
    "compare",
    "cost",
    "fit",
    "load",
    "model",
    "predict",
    "prior_predictive",
    "priors",
    "summary",
]
