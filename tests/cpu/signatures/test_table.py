"""Signatures: complete, and right on instructions as releases write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cpu.execute.ops.tile.building import add, buffer, call, load, number, text, variable
from tlcheck.execute.compile import registry
from tlcheck.program.atomics import is_atomic
from tlcheck.signatures import atomics, bulk_copies
from tlcheck.signatures.atomics import Atomic
from tlcheck.signatures.barriers import is_sync_threads
from tlcheck.signatures.control import thread_axis
from tlcheck.signatures.signature import Address, Collective, Completion, Fence, Proxy, Signature
from tlcheck.signatures.table import FAMILIES, FAMILY_OF, argument, destinations, family_of, signature_of
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.lookup import target

PACKAGE = Path(__file__).parents[3] / "tlcheck"
NAMED_ELSEWHERE = {
    "report/issue_cuda.py": {"warpgroup_fence_operand"},  # lines of CUDA that say nothing
    "worker/parameters.py": bulk_copies.DESCRIPTORS,  # what the host's calls for them become
}
SHARED, GLOBAL, LOCAL = (buffer(f"B_{scope}", "float16", (64,), scope) for scope in ("shared.dyn", "global", "local"))


def address(of: object, at: int = 0) -> Expr:
    return call("address_of", load(of, at)).value  # type: ignore[arg-type]


def found(name: str, *args: Expr) -> Signature:
    signature = signature_of(call(name, *args).value)
    assert signature is not None
    return signature


def _registered() -> Iterator[str]:
    """Names that ops/thread gives a meaning."""
    registry.load()
    for table in (registry.CALLS, registry.EXTERNS):
        yield from (n for n, handler in table.items() if handler.__module__.startswith("tlcheck.execute.ops.thread."))


def test_every_instruction_that_is_executed_has_a_signature_and_no_other_has() -> None:
    names = set(_registered())
    signed = Counter(name for family in FAMILIES for name in family.signatures)
    assert len(names) > 120
    assert names - signed.keys() == set(), "a handler of ops/thread without a signature"
    assert signed.keys() - names == set(), "a signature of what nothing executes"
    assert [name for name, count in signed.items() if count > 1] == []


def test_no_other_module_names_an_instruction() -> None:
    """A new instruction is a handler and a signature. What else depends on it is derived from these."""
    names, found = FAMILY_OF.keys() | bulk_copies.DESCRIPTORS, {}
    for file in PACKAGE.rglob("*.py"):
        place = file.relative_to(PACKAGE).as_posix()
        if not place.startswith(("signatures/", "execute/ops/")) and file.name != "__init__.py":
            found[place] = names & set(re.findall(r'"([\w:]+)"', file.read_text(encoding="utf-8")))
    assert len(found) > 300
    assert {place: named for place, named in found.items() if named} == NAMED_ELSEWHERE


def test_a_family_says_where_it_is_described() -> None:
    assert [family.name for family in FAMILIES if not family.manual] == []
    names = Counter(family.name for family in FAMILIES)
    assert max(names.values()) == 1


@pytest.mark.parametrize("name", ["atomic_add_elem_op", "tma_load", "tma_store"])
def test_a_call_without_its_arguments_is_no_instruction(name: str) -> None:
    """Snapshots that no compiler made have such calls."""
    assert signature_of(call(name).value) is None


def test_a_signature_names_arguments_that_are_there() -> None:
    for name in FAMILY_OF:
        assert destinations(call(name).value) == ()


def test_what_is_no_instruction_has_no_signature() -> None:
    for e in (number(1), load(GLOBAL, 0), call("gemm").value, call("if_then_else").value):
        assert signature_of(e) is None
        assert family_of(e) is None


def test_a_copy_to_shared_memory_in_both_forms() -> None:
    new = call("ptx_cp_async", address(SHARED), address(GLOBAL), number(8)).value
    old = call("ptx_cp_async", SHARED.data, number(64), GLOBAL.data, number(3), number(16), number(1)).value
    for e, source, place in ((new, Address(1), Address(0)), (old, Address(2, 3), Address(0, 1, octets=True))):
        signature = signature_of(e)
        assert signature is not None
        assert (signature.reads, signature.writes) == ((source,), (place,))
        assert (signature.asynchronous, signature.proxy) == (Completion.CP_ASYNC_GROUP, Proxy.GENERIC)
        assert argument(e, signature.writes[0]) is e.args[0]


def test_groups_are_committed_and_waited_for() -> None:
    assert found("ptx_commit_group").commits is Completion.CP_ASYNC_GROUP
    assert found("ptx_wait_group", number(1)).awaits is Completion.CP_ASYNC_GROUP
    both = found("cp_async_wait_all")
    assert both.commits is both.awaits is Completion.CP_ASYNC_GROUP
    assert found("tma_store_wait", number(0)).awaits is Completion.BULK_GROUP
    assert found("wait_wgmma", number(1)).awaits is Completion.WGMMA_GROUP
    assert not found("ptx_wait_group", number(0)).waits  # a thread waits for its own copies


def test_bulk_copies_by_descriptor_and_by_address() -> None:
    by_map = found("tma_load", variable("A_desc", "handle"), load(SHARED, 0), address(SHARED), number(0), number(0))
    by_address = found("tma_load", address(SHARED), address(GLOBAL), load(SHARED, 0), number(256), number(0))
    assert (by_map.reads, by_map.writes, by_map.mbarrier) == ((Address(0),), (Address(2),), 1)
    assert (by_address.reads, by_address.writes, by_address.mbarrier) == ((Address(1),), (Address(0),), 2)
    for signature in (by_map, by_address):
        assert signature.asynchronous is Completion.MBARRIER
        assert (signature.proxy, signature.collective) == (Proxy.ASYNC, Collective.ELECTED)


@pytest.mark.parametrize("adds", [0, 1])
def test_bulk_stores_write_or_add(adds: int) -> None:
    flag = (number(adds), number(0))
    forms = {
        0: found("tma_store", address(GLOBAL), address(SHARED), number(64), *flag),
        1: found("tma_store", address(SHARED), address(GLOBAL), number(64), *flag),  # up to 0.1.7.post1
    }
    forms[2] = found("tma_store", variable("A_desc", "handle"), address(SHARED), number(0), *flag)
    for form, signature in forms.items():
        tensor, shared = (1, 0) if form == 1 else (0, 1)
        assert signature.reads == (Address(shared),)
        assert (signature.updates if adds else signature.writes) == (Address(tensor),)
        assert signature.destinations == (Address(tensor),)
        assert signature.asynchronous is Completion.BULK_GROUP


def test_where_a_copy_says_what_it_copies() -> None:
    new = found("ptx_cp_async", address(SHARED), address(GLOBAL), number(8), number(1))
    old = found("ptx_cp_async", SHARED.data, number(64), GLOBAL.data, number(3), number(16))
    assert (new.size, new.predicate, old.size, old.predicate) == (2, 3, 4, None)
    bulk = found("tma_load", address(SHARED), address(GLOBAL), load(SHARED, 0), number(256), number(0))
    by_map = [found(name, variable("A_desc", "handle"), *[number(0)] * 5) for name in ("tma_load", "tma_store")]
    assert (bulk.size, bulk.coordinates) == (3, None)
    assert [(each.size, each.coordinates) for each in by_map] == [(None, 3), (None, 2)]


def test_a_tensor_map_by_the_call_that_makes_it() -> None:
    numbers = [number(n) for n in range(10, 22)]
    made = bulk_copies.tensor_map(call("create_tma_descriptor", number(6), number(2), GLOBAL.data, *numbers).value)
    assert made is not None
    assert (made.pixels, made.rank, made.tensor) == (False, 2, GLOBAL.data)
    assert [e.value for e in (*made.sizes, *made.octets)] == [10, 11, 12, 13]
    assert [e.value for e in made.fields] == [14, 15, 16, 17, 18, 19, 20, 21]
    assert bulk_copies.tensor_map(address(GLOBAL)) is None


def test_descriptors_are_maps_and_no_addresses() -> None:
    assert bulk_copies.is_descriptor(call("create_tma_descriptor", number(6)).value)
    assert not bulk_copies.is_descriptor(address(GLOBAL))


def test_mbarriers() -> None:
    wait = found("mbarrier_wait_parity", load(SHARED, 0), number(0))
    assert (wait.waits, wait.awaits, wait.releases) == (True, Completion.MBARRIER, False)
    arrive = found("mbarrier_arrive", load(SHARED, 0))
    assert (arrive.waits, arrive.releases, arrive.mbarrier) == (False, True, 0)
    assert not found("mbarrier_expect_tx", load(SHARED, 0), number(64)).releases
    assert found("ptx_cp_async_barrier", load(SHARED, 0)).releases


@pytest.mark.parametrize(
    ("name", "args", "collective", "waits"),
    [
        ("tvm_storage_sync", ("shared",), Collective.BLOCK, True),
        ("tvm_storage_sync", ("warp",), Collective.WARP, False),
        ("tvm_storage_sync", ("global",), Collective.GRID, True),
        ("sync_warp", (), Collective.WARP, False),
        ("syncthreads_or", (), Collective.BLOCK, True),
        ("named_barrier_arrive", (), Collective.BLOCK, False),
        ("sync_grid", (), Collective.GRID, True),
    ],
)
def test_barriers(name: str, args: tuple[str, ...], collective: Collective, waits: bool) -> None:
    signature = found(name, *map(text, args))
    assert (signature.collective, signature.waits, signature.releases) == (collective, waits, True)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("tvm_storage_sync", ("shared",), True),
        ("tvm_storage_sync", ("warp",), False),
        ("tvm_storage_sync", ("global",), False),
        ("sync_threads_partial", (), True),
        ("syncthreads_or", (), False),
    ],
)
def test_sync_threads_is_a_barrier_of_the_block(name: str, args: tuple[str, ...], expected: bool) -> None:
    assert is_sync_threads(call(name, *map(text, args)).value) == expected


def test_the_number_of_a_thread_by_its_axis() -> None:
    assert [thread_axis(call("launch_thread_idx", number(n)).value) for n in range(4)] == [0, 1, 2, None]
    assert thread_axis(number(0)) is thread_axis(call("get_lane_idx", number(0)).value) is None


def test_fences() -> None:
    assert found("fence_proxy_async").fence is Fence.PROXY
    assert found("ptx_fence_barrier_init").fence is Fence.MBARRIER_INIT
    assert found("warpgroup_arrive").fence is Fence.REGISTERS


@pytest.mark.parametrize(
    ("name", "reads", "sums", "collective"),
    [
        ("ptx_mma", (6, 8), 10, Collective.WARP),
        ("ptx_mma_sp", (6, 8, 12), 10, Collective.WARP),
        ("ptx_wgmma_ss", (6, 8), 10, Collective.WARPGROUP),
        ("ptx_wgmma_rs", (5, 7), 9, Collective.WARPGROUP),
        ("ptx_wgmma_sp_ss", (6, 8, 11), 13, Collective.WARPGROUP),
        ("ptx_wgmma_sp_rs", (5, 7, 10), 12, Collective.WARPGROUP),
    ],
)
def test_products_add_to_registers(name: str, reads: tuple[int, ...], sums: int, collective: Collective) -> None:
    signature = found(name)
    assert signature.reads == tuple(Address(at, at + 1) for at in reads)
    assert (signature.updates, signature.writes) == ((Address(sums, sums + 1),), ())
    assert signature.collective is collective
    assert (signature.asynchronous is Completion.WGMMA_GROUP) == ("wgmma" in name)


def test_a_product_of_the_device_library_waits_for_itself_or_not() -> None:
    args = (address(SHARED), address(SHARED), address(LOCAL))
    start = "tl::gemm_ss<64, 64, 64, 4, 1, 0, 0, 0, 64, 64, 0, 0"
    assert found("tl_gemm", text(f"{start}>"), *args).asynchronous is None
    assert found("tl_gemm", text(f"{start}, true>"), *args).asynchronous is None
    assert found("tl_gemm", text(f"{start}, true, -1>"), *args).asynchronous is Completion.WGMMA_GROUP


def test_ldmatrix_in_both_forms() -> None:
    new = found("ptx_ldmatrix", number(0), number(4), address(SHARED), address(LOCAL))
    old = found("ptx_ldmatrix", number(1), number(4), text(".b16"), LOCAL.data, number(8), address(SHARED), number(0))
    assert (new.reads, new.writes) == ((Address(2),), (Address(3),))
    assert (old.reads, old.writes) == ((Address(5, 6),), (Address(3, 4),))


@pytest.mark.parametrize("external", [False, True])
def test_atomics_update_their_first_argument(external: bool) -> None:
    args = (address(GLOBAL), address(SHARED))
    e = call("call_extern", text("AtomicAddx2"), *args) if external else call("atomic_addx2_elem_op", *args)
    signature = signature_of(e.value)
    assert signature is not None
    assert (signature.updates, signature.reads) == ((Address(0),), (Address(1),))
    assert destinations(e.value) == (args[0],)
    assert found("atomic_add_elem_op", address(GLOBAL), number(1)).reads == ()


@pytest.mark.parametrize(
    ("name", "atomic"),
    [
        ("atomic_add_elem_op", Atomic("add")),
        ("atomic_addx4_ret_elem_op", Atomic("add", 4, True)),
        ("AtomicAddx2", Atomic("add", 2)),
        ("AtomicMaxRet", Atomic("max", 1, True)),
        ("atomic_and_elem_op", Atomic("and")),
        ("AtomicXor", Atomic("xor")),
        ("atomic_load_elem_op", Atomic("load", 1, True)),
        ("AtomicStore", Atomic("store")),
    ],
)
def test_a_name_tells_what_an_atomic_does(name: str, atomic: Atomic) -> None:
    assert atomics.ATOMICS[name] == atomic
    assert family_of(call(name, address(GLOBAL), number(1)).value) is atomics.FAMILY
    assert is_atomic(name) == atomic.combines
    assert not is_atomic(name.upper())


def test_a_reduction_waits_where_a_warp_is_not_enough() -> None:
    name = "tl::AllReduce<tl::SumOp, {}, 1, 0>::run"
    few = found("call_extern", text(name.format(32)), number(1))
    many = found("call_extern", text(name.format(64)), number(1), address(SHARED))
    assert (few.waits, few.exchanges, few.collective) == (False, True, Collective.WARP)
    assert (many.waits, many.exchanges, many.collective) == (True, True, Collective.BLOCK)
    assert [many.waits_with(target(arch).warp) for arch in ("sm_90", "gfx942")] == [True, False]
    assert found("tvm_storage_sync", text("shared")).waits_with(64)
    batch = "tl::AllReduce<tl::SumOp, 64, 1, 0, tl::SyncThreadsBarrier, 2, 64>::run_batch"
    assert found("call_extern", text(batch), address(LOCAL), address(SHARED)).updates == (Address(0), Address(1))


def test_only_shuffles_and_reductions_give_values_of_other_lanes() -> None:
    assert found("call_extern", text("__shfl_xor_sync"), number(-1), number(1), number(2)).exchanges
    assert found("warp_reduce_max", number(1)).exchanges
    for name in ("tl_shuffle_elect", "ballot_sync", "match_any_sync"):
        assert not found(name, number(0)).exchanges


def test_control() -> None:
    assert found("thread_return").leaves
    assert found("loop_continue").leaves
    assert found("get_lane_idx") == Signature()


def test_what_is_not_known_may_change_all_its_arguments() -> None:
    args = (address(GLOBAL), add(1, 2))
    assert destinations(call("no_such_instruction", *args).value) == args


def test_what_families_need_are_instructions_of_targets() -> None:
    needed = {family.needs for family in FAMILIES} - {""}
    archs = ("sm_90", "sm_100", "sm_120", "gfx950")
    assert needed <= frozenset().union(*(target(arch).instructions for arch in archs))
    assert {name for name, family in FAMILY_OF.items() if family.needs == "wgmma"} >= {"ptx_wgmma_ss", "wait_wgmma"}
