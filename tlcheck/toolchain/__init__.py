"""Toolchains: one TileLang in one interpreter with its own TVM, made, found and described here."""
