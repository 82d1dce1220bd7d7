"""A script that shows a wrong kernel without tlcheck: it imports tilelang and torch alone.

With a GPU it prints an element and what that should be; without one it prints the CUDA source. The numbers that the
kernel is called with are given by a formula, so that tlcheck can execute the kernel on the same ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from tlcheck.program.roles import roles
from tlcheck.remedy.kernel_changes import key_of
from tlcheck.snapshot.ir import Buffer, Function
from tlcheck.targets.lookup import target as target_of
from tlcheck.witness import Element, indexed

# What floats are, and what integers are, which may be indices: tried in this order. `n` counts elements, from the place
# of the tensor among the parameters: what two tensors hold alike would not be told apart.
FORMULAS = (("n % 7 - 3", "n % 5"), ("n % 7 - 3", "n % 2"), ("n % 5 + 1", "n * 0"))
_IMPORT = "import torch"


@dataclass(frozen=True)
class InputTensor:
    """A parameter of a kernel. content: a formula; empty for an output, which is 0 before the call. first: its n."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    content: str
    first: int = 0

    def made(self, device: str) -> str:
        """Return the expression that makes it. device: a Python expression."""
        shape, dtype = ", ".join(map(str, self.shape)), f"torch.{self.dtype}"
        if not self.content:
            return f"torch.zeros({shape}, dtype={dtype}, device={device})"
        end = prod(self.shape)
        number = f"torch.arange({f'{self.first}, {self.first + end}' if self.first else end}, device={device})"
        reshaped = f".reshape({shape})" if len(self.shape) > 1 else ""
        return f"({self.content.replace('n', number, 1)}){reshaped}.to({dtype})"


@dataclass(frozen=True)
class Reproduction:
    """A kernel's text, and how it is called. kernel: the expression that gives the PrimFunc.

    configs: pass configurations, by name. tensors: none where the kernel takes something else.
    """

    text: str
    kernel: str
    target: str
    configs: Mapping[str, str]
    tensors: tuple[InputTensor, ...]

    @classmethod
    def of(cls, text: str, name: str, target: str, configs: Mapping[str, str]) -> Reproduction:
        """Return the script of a kernel file. name: of the kernel in it."""
        tree = ast.parse(text)
        builder = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == name)
        is_nested = any(isinstance(f, ast.FunctionDef) for f in builder.body)
        decorators = [ast.unparse(d) for d in builder.decorator_list]
        if is_nested:
            builder.decorator_list = []  # of the JIT: its configurations are in `configs`
            kernel = f"{name}()"
        else:
            kernel = name if any("prim_func" in d for d in decorators) else f"{name}.get_tir()"
        text = re.sub(r"\n\n(?= )", "\n", ast.unparse(tree))  # a nested function has an empty line before it
        return cls(text, kernel, target, configs, ())

    def declared(self) -> str:
        """Return a kernel file with a case `shown` that has the script's inputs; lines are those of the script."""
        made = "\n".join(f"    {t.name} = {t.made('device')}" for t in self.tensors)
        names = "".join(f"{t.name}, " for t in self.tensors)
        case = f"def inputs(args, generator, device):\n{made}\n    return ({names})\n"
        builder = self.kernel.partition(".")[0].removesuffix("()")
        imports = "import torch\nfrom tlcheck.case import Case\n"
        return f"{self._kernel}\n\n{imports}{case}\n\nshown = Case({builder}, inputs=inputs)\n"

    def written(self, output: str, element: Element | None) -> str:
        """Return the script. element: what it prints of an output on a GPU; None for the CUDA source there as well."""
        configs = ", ".join(f"tilelang.PassConfigKey.{key_of(name)}: {value}" for name, value in self.configs.items())
        lines = [self._kernel, *([f"configs = {{{configs}}}"] if configs else [])]
        cuda = list(self._cuda())
        if element is None:
            return "\n".join((*lines, *cuda)).removeprefix(f"{_IMPORT}\n") + "\n"
        indented = [f"    {line}" for line in (*self._call(output, element), "else:", *cuda)]
        indented = ["else:" if line == "    else:" else line for line in indented]
        return "\n".join((*lines, "if torch.cuda.is_available():", *indented)) + "\n"

    @property
    def _kernel(self) -> str:
        """The text of the kernel, with the imports of the script."""
        return f"{_IMPORT}\n{self.text.strip()}"

    def _call(self, output: str, element: Element) -> Iterator[str]:
        kind = target_of(self.target).kind
        configs = ", pass_configs=configs" if self.configs else ""
        for tensor in self.tensors:
            yield f"{tensor.name} = {tensor.made(repr('cuda'))}"
        names = ", ".join(t.name for t in self.tensors)
        yield f'tilelang.compile({self.kernel}, target="{kind}"{configs})({names})'
        place = indexed(output, element.index)
        yield f'print("{place} is", {place}.item(), "and should be {element.expected}")'

    def _cuda(self) -> Iterator[str]:
        target = f"tilelang.tvm.target.Target({target_of(self.target).tvm!r})"
        configs = ", config=configs" if self.configs else ""
        yield f"with tilelang.tvm.transform.PassContext(opt_level=3{configs}), {target} as target:"
        flags = "enable_host_codegen=False, enable_device_compile=False"
        yield f"    lowered = tilelang.lower({self.kernel}, target=target, {flags})"
        yield 'print(lowered.kernel_source.split("__global__")[-1])'


def tensors_of(function: Function, formulas: tuple[str, str]) -> tuple[InputTensor, ...]:
    """Return the parameters of a kernel as it is written; none where one is no tensor of constant shape.

    formulas: of floats and of integers.
    """
    if len(function.buffers) != len(function.params):
        return ()
    outputs = {b.data.uid for b in roles(function).outputs}
    found = [
        _tensor(b, "" if b.data.uid in outputs else (formulas[0] if "float" in b.dtype else formulas[1]), place)
        for place, b in enumerate(function.buffers)
    ]
    return tuple(t for t in found if t is not None) if None not in found else ()


def _tensor(buffer: Buffer, content: str, first: int) -> InputTensor | None:
    shape = [dim.value for dim in buffer.shape]
    if buffer.strides or not all(type(dim) is int for dim in shape):
        return None
    return InputTensor(buffer.name, buffer.dtype, tuple(dim for dim in shape if isinstance(dim, int)), content, first)
