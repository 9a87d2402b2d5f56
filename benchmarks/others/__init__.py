"""One posterior by other libraries and by the book: ``python -m benchmarks.others``.

The judge runs in the book's environment and starts samplers in a second one, where this package is
imported, too: what it imports of the book, each sampler says itself.
"""
