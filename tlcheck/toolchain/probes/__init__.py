"""Measures what a release's device library does with each call: the calls compiled to PTX, the PTX executed."""
