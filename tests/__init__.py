"""Tests of the packages, of the stored results and of the pages."""
