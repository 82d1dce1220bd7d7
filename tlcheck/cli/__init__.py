"""The command line: one thin module for each command.

A command module has `add_arguments(parser)` and `run(args) -> int`; `main` imports only that of the chosen command.
"""
