"""Expressions, buffers, layouts and statements of a snapshot.

What the releases spell differently has one spelling here: `Block` and `SBlock`, `LetStmt` and `Bind`, `tir.` and
`tirx.`, `x >> 3` and `x // 8`. What the extractor does not understand is an explicit `unknown` expression or
`Unknown` statement. Objects are immutable and shared; an expression is compared by identity, a variable by its `uid`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tlcheck.snapshot.checkpoint import Checkpoint

UNNAMED = "pass_fn"  # what TVM calls a pass that is written in Python and given no name


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """One node of an expression.

    op: one of `operators.BINARY`; `int`, `float`, `str` (constants, in `value`); `var` (name in `value`, identity in
        `uid`); `not`, `select` (condition, then, else), `cast`, `load` (args: indices, `buffer`), `ramp` (base,
        stride; lanes in `value`), `broadcast` (lanes in `value`), `call` (name in `value`, without the era's prefix),
        `let` (variable, its value, body), `shuffle` (vectors, then indices into all their lanes; number of vectors in
        `value`), `predicated` (load, condition for each lane), `unknown` (what it was in `value`). `if_then_else` and
        the remaining intrinsics are calls; shifts and masks by constant powers of two are floordiv and floormod; div
        is float division, truncdiv and truncmod are C's.
    dtype: TVM's spelling, lanes included: `float32x4`, `int32`, `bool`, `handle`.
    annotations: those of a tile op's call, such as `use_tma`; constants, as text.
    computed: annotations that are expressions, such as the `barrier` of a copy. Walks do not enter them.
    """

    op: str
    dtype: str
    args: tuple[Expr, ...] = ()
    value: int | float | str | None = None
    uid: int = 0
    buffer: Buffer | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    computed: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A typed view of memory. `data` is the pointer variable: buffers with one `data.uid` are aliases.

    shape, strides, elem_offset: in elements; strides are empty for a compact row-major buffer.
    scope: `global`, `shared`, `shared.dyn`, `local`, `local.fragment`, `local.var`, ...
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    scope: str
    data: Expr
    strides: tuple[Expr, ...] = ()
    elem_offset: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """`tl.Layout` (logical index -> physical index) or, with `thread`, `tl.Fragment` (-> thread and local index).

    vars: one variable for each input dimension; `replica` ranges over `replicas` and occurs in `thread` only.
    thread_start: the thread that `thread` counts from: that of the branch in which a warp-specialized kernel uses the
    fragment.
    """

    vars: tuple[Expr, ...]
    input_shape: tuple[Expr, ...]
    index: tuple[Expr, ...]
    thread: Expr | None = None
    replica: Expr | None = None
    replicas: int = 1
    thread_start: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Stmt:
    """Base of all statements. `line` is the line in the kernel's source, 0 if unknown."""

    line: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Statements in order."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """`kind`: serial, parallel, vectorized, unrolled or thread_binding.

    annotations: constants, as text. computed: those that are expressions. layout: how a parallel loop is spread over
    the threads.
    """

    var: Expr
    start: Expr
    extent: Expr
    kind: str
    body: Stmt
    annotations: tuple[tuple[str, str], ...] = ()
    computed: tuple[tuple[str, Expr], ...] = ()
    layout: Layout | None = None


@dataclass(frozen=True, slots=True, eq=False)
class While(Stmt):
    condition: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    condition: Expr
    then: Stmt
    orelse: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Stmt):
    """A let: `var` stands for `value` in what follows in the enclosing Seq."""

    var: Expr
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Thread(Stmt):
    """A launch dimension: `tag` is `blockIdx.x`, `threadIdx.x`, ...; `var` ranges over `extent` in `body`."""

    var: Expr
    tag: str
    extent: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Attr(Stmt):
    """Any other attribute statement, e.g. `kWarpSpecializationScope`.

    node: what it is about, such as the threads of each branch; left out if it is a plain number.
    """

    key: str
    value: Expr | None
    body: Stmt
    node: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(Stmt):
    """A buffer of this kernel; lives to the end of the enclosing Seq."""

    buffer: Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """A TIR block. Maps are pairs, from the pointer variable of a buffer.

    layouts: its layout_map. barriers: how many threads arrive at each mbarrier of a buffer (barrier_init).
    safe_values: what a load out of bounds yields (safe_value_map). threads: of a thread block, x first, where the
    launch itself does not say (tl.launch_threads). annotations: others that are constants, as text.
    """

    name: str
    body: Stmt
    layouts: tuple[tuple[Expr, Layout], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    barriers: tuple[tuple[Expr, tuple[Expr, ...]], ...] = ()
    safe_values: tuple[tuple[Expr, Expr], ...] = ()
    threads: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Store(Stmt):
    """`predicate`: for each lane, whether it is stored."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    predicate: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Assert(Stmt):
    """The kernel stops with `message` where `condition` does not hold."""

    condition: Expr
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Launch(Stmt):
    """One of several kernels of a function, at device-tir: it starts when the one before it has ended."""

    name: str
    params: tuple[Expr, ...]
    attrs: tuple[tuple[str, str], ...]
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Unknown(Stmt):
    """A statement that the extractor does not know: `what` names it, `body` holds what it encloses."""

    what: str
    body: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One PrimFunc: `params` are the pointer or scalar variables, `buffers` the declared ones among them.

    descriptors: at device-tir, a parameter that is a TMA descriptor and the call of `create_tma_descriptor` or
    `create_tma_im2col_descriptor` that makes it. places: pointers and byte offsets of shared buffers that overlap, in
    releases that merge them and leave no other trace of it; buffers without a place overlap nothing.
    """

    name: str
    params: tuple[Expr, ...]
    buffers: tuple[Buffer, ...]
    attrs: tuple[tuple[str, str], ...]
    body: Stmt
    descriptors: tuple[tuple[Expr, Expr], ...] = ()
    places: tuple[tuple[Expr, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One kernel at its checkpoints.

    case, file: as the user named them; `line` is the kernel's first line in `file`.
    toolchain: versions that determine the IR: `tilelang`, `apache-tvm-ffi`, `z3-solver`.
    target: arch, e.g. `sm_90`. args: build arguments, as text. pass_configs: as text.
    checkpoints: name (of a `Checkpoint`) -> the device function there, in pipeline order; absent ones were not reached.
    passes: checkpoint -> name of the pass after (or, for source, intent and tile-ops, before) which it was taken.
    cuda: the generated source. headers: hash of the device library's headers; empty where it is not known.
    inputs: what the kernel is executed on, as `execute.worlds.stored_inputs` packs it; empty where it is not stored.
    """

    case: str
    file: str
    line: int
    toolchain: Mapping[str, str]
    target: str
    args: Mapping[str, str]
    pass_configs: Mapping[str, str]
    checkpoints: Mapping[str, Function]
    passes: Mapping[str, str]
    cuda: str = ""
    headers: str = ""
    inputs: str = ""

    def pass_at(self, checkpoint: str) -> str:
        """The name of a checkpoint's pass, empty for one without; that of `type-cast` has none up to 0.1.13."""
        name = self.passes.get(checkpoint, "")
        if name != UNNAMED:
            return name
        return "tl.DecoupleTypeCast" if checkpoint == Checkpoint.TYPE_CAST else ""

    def is_on(self, pass_config: str) -> bool:
        """Whether a pass configuration was set, as a flag or as a number."""
        return self.pass_configs.get(pass_config) in ("True", "1")
