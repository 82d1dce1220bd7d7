"""Define what mutators use to change expressions and statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.cpu.prove.oracle_text import atomic_name
from tlcheck.snapshot.ir import Evaluate, Expr, Function, Stmt
from tlcheck.snapshot.walk import expressions, postorder, rebuild, statements, with_expressions

Mutation = tuple[str, Callable[[Stmt], Stmt]]  # what is changed, and how
SYNCHRONIZATION = frozenset(
    "tvm_storage_sync sync_threads_partial sync_warp fence_proxy_async mbarrier_wait_parity ptx_arrive_barrier"
    " ptx_arrive_barrier_expect_tx mbarrier_expect_tx ptx_init_barrier_thread_count ptx_commit_group ptx_wait_group"
    " warpgroup_arrive warpgroup_commit_batch warpgroup_wait tma_store_arrive tma_store_wait ptx_cp_async_barrier"
    " ptx_cp_async_barrier_noinc ptx_fence_barrier_init tcgen05_mma_arrive".split()
)
POINTERS = ("address_of", "access_ptr", "if_then_else")


def atomics(function: Function) -> list[Expr]:
    """The atomic calls of a function, each once, in program order."""
    roots = [e for s in statements(function.body) for e in expressions(s)]
    return [e for e in postorder(roots) if atomic_name(e)]


def target(call: Expr) -> Expr:
    """The destination: a load, or a flat `tvm_access_ptr`."""
    e = call.args[1] if call.value == "call_extern" else call.args[0]
    while e.op == "call" and e.value in POINTERS:
        e = e.args[1] if e.value == "if_then_else" else e.args[0]
    return e


def source(call: Expr) -> Expr | None:
    """The first load in the value."""
    value = call.args[2] if call.value == "call_extern" else call.args[1]
    return next((e for e in postorder([value]) if e.op == "load"), None)


def rewrite(root: Expr, new: Mapping[int, Expr]) -> Expr:
    """root with expressions, given by id, replaced."""
    made: dict[int, Expr] = {}
    for e in postorder([root]):
        args = tuple(made[id(a)] for a in e.args)
        same = all(a is b for a, b in zip(args, e.args, strict=True))
        made[id(e)] = new.get(id(e)) or (e if same else replace(e, args=args))
    return made[id(root)]


def with_call(function: Function, call: Expr, new: Expr) -> Function:
    def change(old: Stmt, now: Stmt) -> Stmt:
        roots = [rewrite(e, {id(call): new}) for e in expressions(old)]
        same = all(a is b for a, b in zip(roots, expressions(old), strict=True))
        return now if same else with_expressions(now, roots)

    return replace(function, body=rebuild(function.body, change))


def integer(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def binary(op: str, a: Expr, b: Expr, dtype: str = "int32") -> Expr:
    return Expr(op, dtype, (a, b))


def flipped(e: Expr, step: int = 1) -> Expr:
    """e with `step` added where e // step is even and subtracted elsewhere: neighbours change places."""
    if e.op == "ramp":
        return replace(e, args=(flipped(e.args[0], int(e.value or 1)), e.args[1]))
    odd = binary("floormod", binary("floordiv", e, integer(step)), integer(2))
    return binary("sub", binary("add", e, integer(step)), binary("mul", integer(2 * step), odd))


def with_statement(function: Function, at: Stmt, change: Callable[..., Stmt]) -> Function:
    return replace(function, body=rebuild(function.body, lambda old, now: change(now) if old is at else now))


def called(stmt: Stmt) -> str:
    """The name of the call that a statement is, if it is one."""
    return str(stmt.value.value) if isinstance(stmt, Evaluate) and stmt.value.op == "call" else ""


def with_argument(stmt: Stmt, at: int, change: Callable[[Expr], Expr]) -> Stmt:
    """A call with another argument."""
    assert isinstance(stmt, Evaluate)
    args = list(stmt.value.args)
    args[at] = change(args[at])
    return replace(stmt, value=replace(stmt.value, args=tuple(args)))
