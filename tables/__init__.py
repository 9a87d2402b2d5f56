"""For a table of one's own: rows in groups to arrays, a network or a linear model a group,
predictions, a file.

It stands on ``helpers``, which knows nothing of it: ``frames`` turns a data frame into arrays,
``multilevel`` has the model. The chapter ``real-data`` uses it from end to end.
"""
