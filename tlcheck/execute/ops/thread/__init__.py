"""Instructions of threads, one family in a file."""
