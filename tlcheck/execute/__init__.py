"""Kernels executed on the CPU: source and lowered. Needs NumPy, ml_dtypes and the standard library only.

One run executes several *worlds* at once; a world is one block with the inputs of one seed. A *lane* is a world x a
thread, or within T.Parallel in the source a world x an iteration. A value is a NumPy array with the axes (vector
lanes,) worlds, lanes, each of which may be 1, or a Python scalar where it is the same everywhere. Lanes move in
lockstep: each statement runs in all lanes before the next one does; those that do not take part are masked
(`Frame.active`).

Memory: a register or shared buffer is `Cells`, (cell, world, thread); what a block shares has one thread, and so have
fragments of the source. A global tensor is `Pages`. Both begin as poison, see `values`.

## Handlers

What a call means is said by a handler, in a file of its family: tile operators in `ops/tile/`, instructions of threads
in `ops/thread/`. `registry.load` imports all files, so a new one is known without being listed.

    @call("fill")                                  # or @extern("tl::AllReduce"): device library
    def fill(e: Expr, program: KernelProgram) -> Computation:    # or @attribute(key): attribute statements
        # The docstring states the meaning and its source.
        target, value = whole(region_of(e.args[0], program), program), program.code(e.args[1])    # once

        def run(frame: Frame) -> Value:    # each time
            target.write(frame, one_per_world(value.run(frame), "the value of T.fill"))
            return 0

        return run

At compile time a handler takes from the program: `code(expression)` (its `run(frame)` gives the value),
`place(buffer, indices)` and `pointer(address argument, count, offset)` (their `load(frame)` and `store(frame, value)`
access memory, bounds checked, active lanes only; `count` elements make the first axis), `step(statement)`. In ops/tile/
`region_of(argument, program)` is a box of a buffer: `read(frame)` gives (*extents, worlds) and `write(frame, values)`
takes it. `program.options` says which level runs and whether floats are exact. `program.state` is what it runs in:
memory, worlds, what is spent. `one_value` and `one_per_world` reduce a value that has to be the same in all lanes, and
`frame.mask()` says who takes part. Loads and stores are published to `program.observers`; what else happens, a handler
publishes itself, as an event of `events.Observer`.
What `load` and `take` return may be a view of memory: copy it to keep it.

An instruction has a signature (`tlcheck/signatures/`). If not every target has it, its family says what it needs of
`Target.instructions`; on other targets it is not modelled.

What a handler does not know (an argument, a dtype, a form) it refuses at compile time with `NotModelled("name")`:
the verdict is then undecided, with that name. A handler never guesses.
"""
