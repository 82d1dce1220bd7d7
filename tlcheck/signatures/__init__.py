"""Signatures of instructions: the memory that each touches, who waits for it, and how it completes.

One file per family. `table` lists the families and finds the signature of a call.
"""
