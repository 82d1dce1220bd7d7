"""Run a compiled kernel: lanes in lockstep, and agents that wait for one another."""
