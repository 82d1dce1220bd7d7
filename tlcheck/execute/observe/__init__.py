"""Listen to a running kernel: the order of accesses, races, who wrote a value, what it prints."""
