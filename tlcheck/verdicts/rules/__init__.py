"""One rule per file, found by itself: `tla001_lanes_not_contiguous.py` is rule TLA001, its docstring the `explain`
page. TLA rules are about atomics, TLO about outputs, TLR about the order of accesses, TLL about their legality,
TLS about the source itself.
"""
