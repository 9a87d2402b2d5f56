"""For a table of one's own: rows in groups to arrays, a network or a linear model a group,
predictions, a file.

It stands on ``helpers``, which knows nothing of it. ``frames`` turns a data frame into arrays, and
``columns`` checks what it is given. ``multilevel`` has the model, and ``forward`` its outputs.
``files`` keeps a posterior. The chapter ``your-table`` uses them from end to end.
"""
