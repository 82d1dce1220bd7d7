"""TLO002: an output depends on memory that is not there yet

An output depends on memory that was read too early. tlcheck marks memory of the lowered kernel as poison:

- until something writes it;
- the target of an asynchronous copy, from its start until somebody waits for it;
- an accumulator of wgmma, until its group is waited for.

Poison passes through arithmetic, and has reached an output. On a GPU the kernel may still give the right numbers, most
of the time.

The witness names the element of the output, and which memory was read too early.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; with fewer
stages (`num_stages`) there is less to wait for.
"""

PROBLEM = "poison"
