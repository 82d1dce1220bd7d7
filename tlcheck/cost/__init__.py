"""Describe what a kernel costs: counted by execution on the CPU, scaled to its grid, and held against an arch's peaks.

measure.cost_of(snapshot, request) -> KernelCost      raises Stopped where the kernel cannot be executed
compare.changes(before, after)     -> what may be slower, with its share of the kernel's work
"""
