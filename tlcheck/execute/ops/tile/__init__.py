"""Tile operators as written, one family in a file."""
