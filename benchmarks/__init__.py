"""What gradients, posteriors and the playground cost: ``python -m benchmarks.NAME``. README.md has
what was found.
"""
