"""TLO001: an output is not what is written

The kernel was executed on the CPU twice with the same inputs: as written, before any pass, and as lowered, as the GPU
would run it. An element of an output differs by more than rounding explains: both runs compute in float64, and what
changes when every input is changed a little is not counted.

The witness names the element, what it should be, what it is, and the inputs.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; `tlcheck
bisect --passes` finds the pass; `tlcheck run` compares the kernel with a reference on a GPU. `--seed S --block X,Y,Z`
executes what the witness names alone.
"""

PROBLEM = "differs"
