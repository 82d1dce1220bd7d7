"""Polynomials over the variables of a kernel: what indices, layouts and conditions become, and are evaluated as."""
