"""The text of a kernel while it is composed: its parameters, its lines, the buffers that statements may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tlcheck.fuzz.chance import Chance

FLOATS, INTEGERS = ("float32", "float16", "bfloat16"), ("int32", "int8", "uint8", "int16", "int64")
NAME = "kernel"  # of every kernel that is made here


@dataclass(frozen=True)
class DrawnBuffer:
    """A tensor or a buffer of the kernel. scope: `global`, `shared`, `fragment` or `local`."""

    name: str
    scope: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


@dataclass
class KernelText:
    """A record of what is written until now. grid: blocks along x and y. configs: pass configurations.

    base: the sizes that most tiles have. indices: variables in reach -> the numbers that they stay below. is_partial:
    whether only some steps or blocks come here, so that a tensor with a part for each would not be written whole.
    """

    chance: Chance
    threads: int
    grid: tuple[int, int]
    base: tuple[int, int] = (32, 32)
    configs: dict[str, object] = field(default_factory=dict)
    parameters: list[DrawnBuffer] = field(default_factory=list)
    buffers: list[DrawnBuffer] = field(default_factory=list)
    indices: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    is_partial: bool = False
    _count: int = 0

    def line(self, text: str) -> None:
        self.lines.append(f"{'    ' * self.depth}{text}")

    @contextmanager
    def block(self, head: str, indices: Mapping[str, int] | None = None, *, is_partial: bool = False) -> Iterator[None]:
        """Write a head and what stands below it, with further variables in reach. Buffers that are made there end."""
        before, buffers, was_partial = dict(self.indices), list(self.buffers), self.is_partial
        self.is_partial |= is_partial
        self.line(head)
        self.depth += 1
        self.indices |= indices or {}
        yield
        self.indices, self.buffers, self.is_partial = before, buffers, was_partial
        self.depth -= 1

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def tensor(self, shape: tuple[int, ...], dtype: str, stem: str = "A") -> DrawnBuffer:
        """Add a parameter."""
        made = DrawnBuffer(self.fresh(stem), "global", shape, dtype)
        self.parameters.append(made)
        return made

    def alloc(self, scope: str, shape: tuple[int, ...], dtype: str) -> DrawnBuffer:
        """Write an allocation. Whoever asks for it sets the buffer at once."""
        made = DrawnBuffer(self.fresh(scope[0]), scope, shape, dtype)
        sizes = f"({shape[0]},)" if len(shape) == 1 else str(shape)
        self.line(f'{made.name} = T.alloc_{scope}({sizes}, "{dtype}")')
        self.buffers.append(made)
        return made

    def known(self, *scopes: str, rank: int = 0) -> list[DrawnBuffer]:
        """The buffers in reach of these scopes. rank: that they have; 0 for any."""
        return [b for b in self.buffers if b.scope in scopes and (not rank or len(b.shape) == rank)]

    def text(self) -> str:
        """The whole module."""
        given = ", ".join(f'{b.name}: T.Tensor({_shape(b.shape)}, "{b.dtype}")' for b in self.parameters)
        jit = f"@tilelang.jit(pass_configs={self.configs!r})" if self.configs else "@tilelang.jit"
        x, y = self.grid
        head = [
            "import tilelang",
            "import tilelang.language as T",
            "",
            "",
            jit,
            f"def {NAME}():",
            "    @T.prim_func",
            f"    def main({given}):",
            f"        with T.Kernel({x}, {y}, threads={self.threads}) as (bx, by):",
        ]
        body = [f"            {line}" for line in self.lines]
        return "\n".join([*head, *body, "", "    return main"]) + "\n"


def _shape(shape: tuple[int, ...]) -> str:
    return f"({shape[0]},)" if len(shape) == 1 else str(shape)
