"""The mixed model of the page once more, by statsmodels: variational Bayes, under the page's
priors.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.preprocessing import StandardScaler
from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

from experiments.problems import health


def predict(
    train: pd.DataFrame, test: pd.DataFrame
) -> tuple[Float[np.ndarray, " row"], dict[str, float]]:
    """Return p of new families in sites and plans that were seen, and the effects' sd.

    Slopes of standardised features are N(0, 1 / number of features), the log standard deviations
    N(0, 1). A new family is averaged over by Gauss-Hermite quadrature.
    """
    median = train[health.FEATURES].median()
    x, at = (one[health.FEATURES].fillna(median) for one in (train, test))
    scaler, root = StandardScaler().fit(x), np.sqrt(len(health.FEATURES))
    frame = pd.DataFrame(scaler.transform(x) / root, columns=health.FEATURES)
    names = *health.EFFECTS, health.OUTCOME
    frame = frame.assign(**{name: train[name].to_numpy() for name in names})
    effects = {name: f"0 + C({name})" for name in health.EFFECTS}
    formula = f"{health.OUTCOME} ~ {' + '.join(health.FEATURES)}"
    fit = BinomialBayesMixedGLM.from_formula(formula, effects, frame, vcp_p=1.0, fe_p=1.0).fit_vb()
    of_levels = dict(zip(fit.model.vc_names, fit.vc_mean, strict=True))
    logit = fit.fe_mean[0] + scaler.transform(at) / root @ fit.fe_mean[1:]
    for name in ("site", "plan"):
        logit += np.array([of_levels[f"C({name})[{level}]"] for level in test[name]])
    sd = dict(zip(effects, np.exp(fit.vcp_mean).tolist(), strict=True))
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    p = 1 / (1 + np.exp(-(logit[:, None] + sd["family"] * nodes)))
    return p @ (weights / weights.sum()), sd
