"""What fits or samples the problems for a comparison, and how the answers are scored."""
