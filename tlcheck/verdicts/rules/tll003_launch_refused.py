"""TLL003: the lowered kernel asks for more than the device has

The lowered kernel needs more threads in a block, more shared memory or a larger grid than the target has (CUDA C++
Programming Guide, "Compute Capabilities"), while the source asks for less: TileLang has added threads for warp
specialization, or memory of its own. The compiler or the driver refuses such a kernel, so nothing that was executed
says what a device does.

The witness names what is asked for and the limit.

What to do: smaller tiles, fewer threads or fewer stages of a pipeline; `tlcheck fix CASE` tries arguments and releases.
"""

PROBLEM = "launch"
