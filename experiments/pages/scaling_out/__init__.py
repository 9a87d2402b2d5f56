"""One large fit over processes, many fits over workers, and many rows from disk."""
