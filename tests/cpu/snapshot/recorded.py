"""Snapshots of the recorded graphs, and small graphs made by hand."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlcheck.snapshot.ir import Snapshot
from tlcheck.worker.translate import translate

GRAPHS = Path(__file__).parent / "graphs"
RECORDED = tuple(sorted(path.name.removesuffix(".json.gz") for path in GRAPHS.glob("*.gz")))
ERAS = ("0.1.6.post2", "0.1.7", "0.1.7.post3", "0.1.15")
META = {
    "case": "case",
    "file": "kernels.py",
    "line": 1,
    "toolchain": {"tilelang": "0"},
    "target": "sm_90",
    "args": {},
    "pass_configs": {},
    "passes": {"intent": "pass"},
    "cuda": "",
}


@functools.cache
def graph(name: str) -> tuple[str, Mapping[str, Any]]:
    """The graph of RELEASE.KERNEL and its meta data."""
    record = json.loads(gzip.decompress((GRAPHS / f"{name}.json.gz").read_bytes()))
    return record["graph"], record["meta"]


@functools.cache
def snapshot(name: str) -> Snapshot:
    """The translated graph; objects are shared between calls."""
    return translate(*graph(name))


class Maker:
    """Makes a graph in tvm_ffi's dialect; each method returns the index of the node that it adds."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.null = self.node("None")

    def node(self, kind: str, data: Any = None) -> int:
        self.nodes.append({"type": kind} if data is None else {"type": kind, "data": data})
        return len(self.nodes) - 1

    def fields(self, kind: str, /, **fields: Any) -> int:
        return self.node(kind, {"span": self.null, **fields})

    def array(self, *items: int) -> int:
        return self.node("ffi.Array", list(items))

    def string(self, text: str) -> int:
        return self.node("ffi.String", text)

    def map(self, *pairs: tuple[int, int]) -> int:
        return self.node("ffi.Map", [index for pair in pairs for index in pair])

    def number(self, value: int, dtype: str = "int32") -> int:
        return self.fields("ir.IntImm", dtype=dtype, value=value)

    def var(self, name: str, dtype: str = "int32") -> int:
        return self.fields("tirx.Var", dtype=dtype, name=self.string(name), type_annotation=self.null)

    def binary(self, kind: str, a: int, b: int, dtype: str = "int32") -> int:
        return self.fields(f"tirx.{kind}", dtype=dtype, a=a, b=b)

    def call(self, name: str, *args: int, dtype: str = "int32") -> int:
        return self.fields("tirx.Call", dtype=dtype, op=self.node("ir.Op", name), args=self.array(*args))

    def evaluate(self, value: int) -> int:
        return self.fields("tirx.Evaluate", value=value)

    def seq(self, *parts: int) -> int:
        return self.fields("tirx.SeqStmt", seq=self.array(*parts))

    def buffer(self, name: str, *shape: int, strides: tuple[int, ...] = (), offset: int | None = None) -> int:
        extents = [self.number(extent) for extent in shape]
        return self.fields(
            "tirx.Buffer",
            data=self.var(name, "handle"),
            dtype="float32",
            shape=self.array(*extents),
            strides=self.array(*[self.number(stride) for stride in strides]),
            elem_offset=self.null if offset is None else self.number(offset),
            name=self.string(name),
        )

    def load(self, buffer: int, *indices: int, predicate: int | None = None) -> int:
        guard = self.null if predicate is None else predicate
        return self.fields(
            "tirx.BufferLoad", dtype="float32", buffer=buffer, indices=self.array(*indices), predicate=guard
        )

    def store(self, buffer: int, value: int, *indices: int, predicate: int | None = None) -> int:
        guard = self.null if predicate is None else predicate
        return self.fields(
            "tirx.BufferStore", buffer=buffer, value=value, indices=self.array(*indices), predicate=guard
        )

    def block(
        self, body: int, annotations: int, predicate: int, init: int | None = None, allocs: tuple[int, ...] = ()
    ) -> int:
        empty = self.array()
        block = self.fields(
            "tirx.SBlock",
            iter_vars=empty,
            name_hint=self.string("block"),
            alloc_buffers=self.array(*allocs),
            match_buffers=empty,
            annotations=annotations,
            init=self.null if init is None else init,
            body=body,
        )
        return self.fields("tirx.SBlockRealize", iter_values=empty, predicate=predicate, block=block)

    def launch(self, body: int) -> int:
        """`body` in a kernel of one thread."""
        axis = self.fields("tirx.IterVar", var=self.var("tx"), thread_tag=self.string("threadIdx.x"))
        key = self.string("thread_extent")
        return self.fields("tirx.AttrStmt", node=axis, attr_key=key, value=self.number(1), body=body)

    def function(self, body: int, *params: int) -> int:
        empty = self.map()
        return self.fields(
            "tirx.PrimFunc",
            attrs=self.null,
            params=self.array(*params),
            buffer_map=empty,
            ret_type=self.null,
            body=body,
        )

    def module(self, **functions: int) -> int:
        entries = [
            (self.fields("ir.GlobalVar", name_hint=self.string(name)), index) for name, index in functions.items()
        ]
        return self.fields("ir.IRModule", functions=self.map(*entries))

    def text(self, **modules: int) -> str:
        root = self.map(*[(self.string(name), index) for name, index in modules.items()])
        return json.dumps({"root_index": root, "nodes": self.nodes})
