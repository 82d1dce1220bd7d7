"""Define how a kernel file declares its cases.

Imported by kernel files inside the toolchain's interpreter: needs the standard library only, Python 3.10 or newer.

A case is one kernel with fixed build arguments, its targets, a torch reference with its tolerance, and what is
expected of it in which releases. Cases are module-level variables; the variable's name is the case's name::

    causal = Case(flashattn_bwd, args={"batch": 1, "heads": 64}, reference=reference, inputs=inputs)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tlcheck.targets.lookup import USUAL

Number = int | Callable[[Mapping[str, Any]], int]  # of a case's arguments

ALL_TARGETS = USUAL


@dataclass(frozen=True)
class Expect:
    """One known defect of some TileLang releases, as pytest's xfail: reported in full, counted apart.

    Give exactly one of `rule` and `error`.

    releases: PEP 440 specifier of the releases that show it, such as ``">=0.1.7.post3,<=0.1.14"``.
    rule: id of the rule that refutes a claim of the case, such as ``"TLA001"``.
    error: regular expression found in the error that lowering ends with.
    buffer: only findings at this destination; any if empty.
    targets: archs that show it; all of the case if empty.
    reason: why, with a link if there is one.
    """

    releases: str
    rule: str = ""
    error: str = ""
    buffer: str = ""
    targets: Sequence[str] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        if bool(self.rule) == bool(self.error):
            raise ValueError("Expect takes exactly one of rule= and error=")
        object.__setattr__(self, "targets", tuple(self.targets))


@dataclass(frozen=True)
class Variant:
    """Other inputs for a case's kernel.

    inputs: a function as `Case.inputs`.
    reference: a function as `Case.reference`; None for the case's own.
    """

    inputs: Callable[..., Any]
    reference: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Case:
    """One kernel with fixed build arguments.

    kernel: a ``@tilelang.jit`` function, a function that returns a PrimFunc, or a PrimFunc.
    args: the kernel's build arguments.
    targets: archs it is lowered for.
    inputs: ``inputs(args, generator, device)`` returns a tensor for each parameter, in order, outputs included (zeroed
        if the kernel accumulates into them).
    reference: ``reference(args, *inputs)`` returns a float64 (or integer) tensor for each output, by parameter name, in
        the physical arrangement in which the kernel leaves it.
    tolerance: bound of ||out - ref|| / ||ref|| for each output; None: derived from the dtypes, `terms`, `rounded` and
        the reference's own error in float32.
    expect: known defects of releases.

    The fields below are for `tlcheck run`:

    variants: other inputs by name, such as ties, large values or another size.
    exact: inputs on which every sum is exact, so that outputs must equal the reference's; None: `inputs` with
        floating-point values rounded to integers.
    outcome: ``outcome(args, *tensors after the run)`` returns the part of the outputs that does not depend on the order
        of threads, to compare with `reference`; None: all outputs.
    updates: outputs whose content before the run matters: added to, or written in part. None: those that the kernel
        adds to with atomics, or reads. Outputs that it does not read are poisoned before each run.
    recorded: a file beside the kernel file, kept by `tlcheck capture --live`: a call with its inputs and outputs. The
        call is repeated and compared with these outputs; `inputs` and `reference` may be left out.
    terms: how many terms the kernel sums for one element of an output; a number, or a function of `args`; None: as
        many as the longest axis of a tensor has elements.
    rounded: the narrowest dtype of operands or intermediate results, if it is narrower than the accumulator.
    float_atomics: whether the order of floating-point additions may differ from run to run; None: derived from the
        kernel's atomics.
    baselines: torch functions that compute the same, by name: ``baseline(args, *inputs)`` returns the function that is
        timed.
    traffic: bytes that the kernel has to move; None: each tensor once. A number, or a function of `args`.
    flops: operations that it has to do; None: no floor from them. A number, or a function of `args`.
    """

    kernel: Callable[..., Any] | Any
    args: Mapping[str, Any] = field(default_factory=dict)
    targets: Sequence[str] = ALL_TARGETS
    inputs: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    tolerance: float | None = None
    expect: Sequence[Expect] = ()
    variants: Mapping[str, Variant] = field(default_factory=dict)
    exact: Variant | None = None
    outcome: Callable[..., Any] | None = None
    updates: Sequence[str] | None = None
    recorded: str = ""
    terms: Number | None = None
    rounded: str = ""
    float_atomics: bool | None = None
    baselines: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    traffic: Number | None = None
    flops: Number | None = None

    def __post_init__(self) -> None:
        called_with = (self.inputs, self.exact, self.variants, self.recorded)
        if self.reference is not None and not any(called_with):
            raise ValueError("Case takes reference= together with inputs=, the tensors that it is called with")
