"""The command line: one thin module for each command.

A command module has `add_arguments(parser)` and `run(args) -> int`; heavy imports belong inside `run`.
"""
