"""A folder per page: the settings of its results, what a unit of each computes, its scores."""
