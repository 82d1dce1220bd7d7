"""Runs a user's script as it is, without a GPU, and records the kernels that it compiles.

`script` runs it; `interception` takes the place of TileLang's compiler, profiler and tuner; `tensors` and `gpu` that of
torch's device; `standins` that of packages that are not there; `recording` lowers each kernel in a process of its own.
"""
