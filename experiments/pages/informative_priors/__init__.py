"""Experiments of the page of this name, and what they share with it."""
