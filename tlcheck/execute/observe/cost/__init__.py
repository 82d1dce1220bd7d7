"""Describe what a run costs, counted as Nsight Compute counts it: see `counter`."""
