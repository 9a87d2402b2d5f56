"""Data sets and log densities by name: what is asked for, and no method that answers."""
