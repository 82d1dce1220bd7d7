"""Tile operators in the source, one family in a file."""
