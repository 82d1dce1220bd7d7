"""TLO001: an output is not what is written

tlcheck executed the kernel twice on the CPU with the same inputs: the source, and the lowered kernel as the GPU would
run it. An element of an output differs by more than rounding. Both runs compute in float64. A difference that a small
change of every input also makes does not count.

The witness names the element, what it should be, what it is, and the inputs.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; `tlcheck
bisect --passes` finds the pass; `tlcheck run` compares the kernel with a reference on a GPU. `--seed S --block X,Y,Z`
executes only what the witness names.
"""

PROBLEM = "differs"
