"""Eight tables by ``tables`` and by Bambi: ``python -m benchmarks.tables``.

The judge and ``ours`` run in the book's environment. ``with_bambi`` runs in one of its own, where
``data`` and ``clock`` are imported, too.
"""
