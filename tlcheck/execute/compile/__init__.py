"""Compile the statements and expressions of a kernel into closures over a frame."""
