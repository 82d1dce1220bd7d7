"""Reads one function of a snapshot: its statements in place, memory, atomics, bulk copies, layouts, instructions."""
