"""Gradients a second of one device that runs chains by the thousand: ``python -m
benchmarks.many_chains``.
"""
