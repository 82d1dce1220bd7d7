"""T.print: calls of the device library's debug_print_* (TileLang, language/print_op.py), and `breakpoint()`.

Nothing happens to values. What is said, and where a debugger stops, is the business of those who listen.
"""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import extern
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, one_value
from tlcheck.execute.memory.values import Value
from tlcheck.snapshot.ir import Expr


@extern("debug_print_msg", "debug_print_var")
def printed(e: Expr, program: KernelProgram) -> Computation:
    """`debug_print_var(text, value)`, in each thread; `debug_print_msg(text)`."""
    observers = program.observers
    if not observers.hear(Observer.printed):
        return _nothing
    text, *values = e.args
    code = program.code(values[0]) if values else None

    def run(frame: Frame) -> Value:
        observers.printed(frame, str(text.value), None if code is None else code.run(frame))
        return 0

    return run


@extern("debug_print_buffer_value")
def printed_element(e: Expr, program: KernelProgram) -> Computation:
    """`debug_print_buffer_value(text, name, number of the element, its value)`."""
    observers = program.observers
    if not observers.hear(Observer.element_printed):
        return _nothing
    text, name, number, element = e.args
    place, value = program.code(number), program.code(element)
    sizes = () if element.buffer is None else element.buffer.shape
    shape = tuple([int(size.value) for size in sizes if isinstance(size.value, int)])
    said = f"{text.value}: {name.value}"

    def run(frame: Frame) -> Value:
        first = one_value(place.run(frame), "the number of a printed element") == 0
        observers.element_printed(frame, said, shape, first, value.run(frame))
        return 0

    return run


@extern("tlcheck_breakpoint")
def stopped(e: Expr, program: KernelProgram) -> Computation:
    """`tlcheck_breakpoint(file, line, name, value, ...)`: see `tlcheck.worker.breakpoints`."""
    observers = program.observers
    if not observers.hear(Observer.breakpoint_reached):
        return _nothing
    file, line, *named = e.args
    place = str(file.value), int(line.value or 0)
    codes = {str(name.value): program.code(value) for name, value in zip(named[::2], named[1::2], strict=True)}

    def run(frame: Frame) -> Value:
        observers.breakpoint_reached(frame, place, {name: code.run(frame) for name, code in codes.items()})
        return 0

    return run


def _nothing(frame: Frame) -> Value:
    return 0
