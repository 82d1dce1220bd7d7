"""What runs in the toolchain's interpreter: discovers, builds and lowers kernels, and extracts their snapshots.

Nothing else in tlcheck imports tilelang or a user's kernel file. Standard library only, Python 3.10 or newer.
"""
