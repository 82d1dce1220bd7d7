"""Runs a user's script as it is, and records the kernels that it compiles, each lowered by `recording`.

`script` runs it. Without a GPU, `interception` takes the place of TileLang's compiler, profiler and tuner; `tensors`
and `gpu` that of torch's device; `standins` that of packages that are not there. With one, `live` watches, and
`observation` keeps calls.
"""
