"""The tables on which the field has compared Bayesian networks since 2015."""
