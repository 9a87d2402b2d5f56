"""Stored results of the page ``your-table``."""
