"""What computes the stored results, in four rooms that stand on each other.

``problems`` are data and densities by name, ``methods`` fit and sample them for a comparison,
``engine`` runs units on Dask and keeps what they find, and ``pages`` has a folder per page with a
module per result. A room imports only from those before it, and a page from no other page.
"""
