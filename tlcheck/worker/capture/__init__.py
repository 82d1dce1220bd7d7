"""Runs a user's script as it is, and records the kernels that it compiles, each lowered by `kernel_recording`.

`script` runs it. Without a GPU, `interception` takes the place of TileLang's compiler, profiler and tuner; `tensors`
and `gpu` that of torch's device, also within a script's own `torch_operators`; `triton_kernels` that of Triton. With
one, `live` watches, and `observation` keeps calls.
"""
