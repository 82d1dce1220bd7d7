"""Describe what runs in the toolchain's interpreter: discovers, builds and lowers kernels, and extracts their
snapshots.

Nothing else in tlcheck imports tilelang, torch or a user's kernel file. What both interpreters import is the standard
library's only, for Python 3.10 or newer.
"""
