"""TLL004: one release lowers one kernel in several ways

Lowered again in a fresh process by the same release, with the same arguments and pass configurations, the kernel has
another TIR. A search inside of a pass has then ended at a limit of time or steps, or the order of a container is one of
addresses. Which of the forms runs is chance: each was judged, and the worst one is reported.

The witness counts the forms, and names the first difference between the two most frequent ones.

What to do: pin another release; until then, compare measurements of this kernel with care, and check it with `--repeat`
in CI.
"""

PROBLEM = "repetition"
