"""Measures what a release's device library does with each call: the calls compiled to PTX, the PTX executed.

`benchmarks/device_library.py` makes the table of releases with it. It is a part of tlcheck, since a toolchain that the
user names by its path is measured before it lowers.
"""
