"""mma.sp and wgmma.sp against a dense product; the manual's formulas of who holds what are written down once more."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import buffer, call, flag, load, number, text, variable
from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Alloc, Buffer, Expr, For, Function, Seq, Stmt, Store, Thread

registry.load()
KINDS = {
    "fp16": ("float16", "fp32", "float32"),
    "fp32": ("float32", "fp32", "float32"),
    "int8": ("int8", "int32", "int32"),
}
WORDS = ("uint8", "int16", "int32")


@dataclass
class Block:
    """A block of threads that copy tensors to registers and shared memory, and registers to a tensor."""

    threads: int
    tx: Expr = field(default_factory=lambda: variable("tx"))
    tensors: dict[Buffer, Array | None] = field(default_factory=dict)
    body: list[Stmt] = field(default_factory=list)

    def registers(self, name: str, dtype: str, values: Array) -> Buffer:
        """Registers that hold (threads, elements)."""
        tensor, made = buffer(name, dtype, [values.size]), buffer(f"{name}_local", dtype, [values.shape[1]], "local")
        self.tensors[tensor] = values.astype(kind_of(dtype).array)
        self.body.append(Alloc(made))
        self._copied(made, tensor, values.shape[1], into=True)
        return made

    def shared(self, name: str, dtype: str, values: Array) -> Buffer:
        """Shared memory with these elements."""
        tensor, made = buffer(name, dtype, [values.size]), buffer(f"{name}_shared", dtype, [values.size], "shared")
        self.tensors[tensor] = values.reshape(-1).astype(kind_of(dtype).array)
        self.body.append(Alloc(made))
        step = variable("i")
        at = Expr("add", "int32", (Expr("mul", "int32", (self.tx, number(values.size // self.threads))), step))
        stored = Store(made, (at,), load(tensor, at))
        self.body.append(For(step, number(0), number(values.size // self.threads), "serial", stored))
        return made

    def left_in(self, registers: Buffer) -> Array:
        """Run it: what registers hold at the end, (threads, elements)."""
        count = int(registers.shape[0].value or 0)
        out = buffer("out", registers.dtype, [self.threads * count])
        self.tensors[out] = None
        self._copied(registers, out, count, into=False)
        given = {str(b.data.value): _tensor(b, values) for b, values in self.tensors.items()}
        inner = Thread(self.tx, "threadIdx.x", number(self.threads), Seq(tuple(self.body)))
        function = Function("main", tuple(b.data for b in self.tensors), tuple(self.tensors), (), inner)
        machine = Machine(function, (self.threads, 1, 1), [World(0)], given, {}, Options(source=False))
        machine.run()
        return np.asarray(machine.pages("out").outcome(0)[1]).reshape(self.threads, count)

    def _copied(self, registers: Buffer, tensor: Buffer, count: int, into: bool) -> None:
        step = variable("i")
        at = Expr("add", "int32", (Expr("mul", "int32", (self.tx, number(count))), step))
        stored = Store(registers, (step,), load(tensor, at)) if into else Store(tensor, (at,), load(registers, step))
        self.body.append(For(step, number(0), number(count), "serial", stored))


def _tensor(of: Buffer, values: Array | None) -> Tensor:
    flat = None if values is None else values.reshape(-1)
    return Tensor(
        kind_of(of.dtype),
        int(of.shape[0].value or 0),
        lambda seed, numbers: None if flat is None else flat[numbers],
    )


def _pruned(rows: int, k: int, kind: str) -> tuple[Array, Array, Array]:
    """A matrix with half its elements in each group, these elements, and 4 bits for each group."""
    group, kept = (2, 1) if kind == "fp32" else (4, 2)
    random = np.random.default_rng(11)
    dense, elements, bits = np.zeros((rows, k), np.int64), [], np.zeros((rows, k // group), np.int64)
    for row in range(rows):
        for g in range(k // group):
            places = sorted(random.choice(group, kept, replace=False).tolist())
            values = random.integers(1, 6, kept)
            dense[row, [g * group + p for p in places]] = values
            elements += values.tolist()
            bits[row, g] = (0b0100, 0b1110)[places[0]] if group == 2 else places[0] | places[1] << 2
    return dense, np.array(elements).reshape(rows, k // 2), bits


def _word(bits: Array) -> int:
    """Groups' bits as one word, the first group lowest."""
    return sum(int(b) << 4 * i for i, b in enumerate(bits))


def _metadata(bits: Array, kind: str, selector: int, dtype: str) -> Array:
    """32 bits for each thread of the warps of 16 rows, as (threads, elements); noise where none is asked for."""
    words = []
    for warp in range(len(bits) // 16):
        for lane in range(32):
            g, t = warp * 16 + lane // 4, lane % 4
            if kind == "int8":
                row = bits[g + 8 * (t % 2)]
                words.append(_word(row[:8] if t < 2 else row[8:]))
            elif t // 2 == selector:
                half = slice(0, 4) if t % 2 == 0 else slice(4, 8)
                words.append(_word(bits[g][half]) | _word(bits[g + 8][half]) << 16)
            else:
                words.append(0x9C64E4B1)
    return np.array(words, np.uint32).reshape(-1, 1).view(dtype)


def _kept_by(elements: Array, run: int, lane: int, warp: int) -> list[int]:
    """Return what a thread holds of A: `run` neighbours, the same 8 rows down, both again half of the columns on."""
    g, t = warp * 16 + lane // 4, lane % 4
    half = elements.shape[1] // 2
    corners = [(g, 0), (g + 8, 0), (g, half), (g + 8, half)]
    return [elements[r, c + t * run + i] for r, c in corners for i in range(run)]


FORMS = [
    (kind, words, selector)
    for kind in KINDS
    for words in WORDS
    for selector in (0, 1)
    if (kind, words) not in (("fp16", "int32"), ("fp32", "int32")) and not (kind == "int8" and selector)
]


@pytest.mark.parametrize(("kind", "words", "selector"), FORMS)
def test_mma_multiplies_where_the_metadata_says(kind: str, words: str, selector: int) -> None:
    dtype, total, c_dtype = KINDS[kind]
    run = 4 // np.dtype(dtype).itemsize
    k = run * 16
    dense, elements, bits = _pruned(32, k, kind)
    b = np.random.default_rng(5).integers(-5, 6, (k, 8))
    block = Block(64)
    a_held = [_kept_by(elements, run, lane, warp) for warp in range(2) for lane in range(32)]
    b_held = [
        [b[step + lane % 4 * run + i, lane // 4] for step in range(0, k, 4 * run) for i in range(run)]
        for lane in range(32)
    ]
    a = block.registers("A", dtype, np.array(a_held))
    right = block.registers("B", dtype, np.array(b_held * 2))
    e = block.registers("E", words, _metadata(bits, kind, selector, words))
    c = block.registers("C", c_dtype, np.full((64, 4), 3))
    names = [text(x) for x in (f"m16n8k{k}", "row", "col", kind, kind, total)]
    operands = [x for held in (a, right, c, e) for x in (held.data, number(0))]
    block.body.append(call("ptx_mma_sp", *names, *operands, number(selector), flag(False)))
    product = dense @ b + 3
    expected = [
        [product[warp * 16 + lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2] for i in range(4)]
        for warp in range(2)
        for lane in range(32)
    ]
    np.testing.assert_array_equal(block.left_in(c), np.array(expected))


def test_metadata_that_spans_rows_is_not_modelled() -> None:
    block = Block(32)
    held = [block.registers(n, "float16", np.zeros((32, 16))) for n in "AB"]
    c, e = block.registers("C", "float32", np.zeros((32, 4))), block.registers("E", "int32", np.zeros((32, 1)))
    names = [text(x) for x in ("m16n8k32", "row", "col", "fp16", "fp16", "fp32")]
    operands = [x for r in (*held, c, e) for x in (r.data, number(0))]
    block.body.append(call("ptx_mma_sp", *names, *operands, number(0), flag(False)))
    with pytest.raises(NotModelled, match="metadata of 32 bits"):
        block.left_in(c)


def _tiled(matrix: Array) -> Array:
    """A matrix by 8 rows and 16 bytes, row by row in each; such tiles lie side by side along k first."""
    width = 16 // matrix.dtype.itemsize
    rows, k = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows // 8, 8, k // width, width).swapaxes(1, 2))


@pytest.mark.parametrize("words", ["uint8", "int16"])
@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_wgmma_multiplies_where_the_metadata_says(kind: str, in_registers: bool, words: str) -> None:
    dtype, total, c_dtype = KINDS[kind]
    run = 4 // np.dtype(dtype).itemsize
    k = run * 16
    dense, elements, bits = _pruned(64, k, kind)
    b = np.random.default_rng(5).integers(-5, 6, (16, k))
    block = Block(128)
    descriptors = {n: buffer(f"desc_{n}", "uint64", [1], "local.descriptor.wgmma") for n in "AB"}
    block.body += [Alloc(d) for d in descriptors.values()]
    shared = {"B": block.shared("B", dtype, _tiled(b.astype(dtype)))}
    if in_registers:
        held = np.array([_kept_by(elements, run, lane, warp) for warp in range(4) for lane in range(32)])
        left: tuple[Expr, ...] = (block.registers("A", dtype, held).data, number(0))
    else:
        shared["A"] = block.shared("A", dtype, _tiled(elements.astype(dtype)))
        left = (descriptors["A"].data, number(0))
    e = block.registers("E", words, _metadata(bits, kind, 0, words))
    c = block.registers("C", c_dtype, np.full((128, 8), 3))
    for name, tile in shared.items():
        address = Expr("call", "handle", (load(tile, 0),), "address_of")
        along = (k if name == "B" else k // 2) * np.dtype(dtype).itemsize // 16
        layout = [number(x) for x in (0, 8, along * 8)]  # no swizzle; 16 bytes along k, and 8 rows, in 16 bytes
        block.body.append(call("initialize_wgmma_descriptor", load(descriptors[name], 0), address, *layout))
    block.body += [call("fence_proxy_async"), call("tvm_storage_sync", text("shared")), call("warpgroup_arrive")]
    majors = [flag(True)] if in_registers else [flag(True), flag(True)]
    names = [text(f"m64n16k{k}"), *majors, *[text(x) for x in (kind, kind, total)]]
    rest = (e.data, number(0), number(0), descriptors["B"].data, number(0), c.data, number(0), *[number(1)] * 3)
    block.body.append(call(f"ptx_wgmma_sp_{'rs' if in_registers else 'ss'}", *names, *left, *rest))
    block.body += [call("warpgroup_commit_batch"), call("warpgroup_wait", number(0))]
    product = dense @ b.T + 3
    expected = [
        [product[t // 32 * 16 + t % 32 // 4 + i // 2 % 2 * 8, i // 4 * 8 + t % 4 * 2 + i % 2] for i in range(8)]
        for t in range(128)
    ]
    np.testing.assert_array_equal(block.left_in(c), np.array(expected))
