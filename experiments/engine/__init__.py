"""Computes, keeps and checks the stored results: ``python -m experiments.engine [--check |
--status] [NAME ...]``.

An experiment is a module ``experiments/pages/PAGE/NAME.py`` that makes
``book/results/PAGE/NAME.json``. It has

- ``SETTINGS``, JSON;
- ``units()``: by the name of each unit its setting, JSON, which is the keyword arguments of
- ``unit(**setting)``: the long part; returns the draws, a nested dict of arrays;
- ``score(drawn, **setting)``: JSON, a dict, what the result keeps of a unit; without it ``unit``
  returns that itself;
- ``rows(scored)``: rows of the result from the scores by unit; without it ``{"name": name,
  **score}`` of each;
- ``SMALL``: the setting that ``--check`` recomputes, of one of the units or of one more; or a list
  of such, where parts of a result are computed by different code.

Units run on Dask's ``distributed``: on the cores of this machine, or on the cluster that
``DASK_SCHEDULER_ADDRESS`` names. What they draw is kept in ``.units``, or in the folder
``RESULTS_STORE``, under hashes of code and setting.
"""
