"""Define which mutants of whole kernels are noticed, and the table of those that are not:
`tests/mutants/survivors.toml`.

A mutant is noticed if executing it refutes it. Of the others the table says why: `equivalent` ones do what the kernel
does, `missed` ones do not, of `undecided` ones the execution says that it does not know.

`python -m tests.cpu.mutations.survivors "rows sm_90" "move tvm_storage_sync 1"` shows what a mutant changes.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.cpu.mutations.lowered import LoweredMutant, lowered_mutants
from tests.hardware.snapshots import unpack
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Function, Snapshot
from tlcheck.snapshot.text import render

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "tests" / "mutants" / "survivors.toml"
VERDICTS = ("equivalent", "missed", "undecided")
FORMS = ("gemm_three_stages", "rs_fp16", "im2col", "reduce_fp32", "tma_2d_edges", "tma_4d")
_MOST = 3  # mutants of one kind and what, of one kernel
_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class Survivor:
    """The reason why a mutant is not noticed. verdict: one of `VERDICTS`."""

    verdict: str
    why: str


@cache
def kernels() -> dict[str, Snapshot]:
    """The kernels that are mutated, by name and arch."""
    forms = unpack(ROOT / "tests" / "hardware" / "forms-0.1.15.zip")
    others = unpack(ROOT / "tests" / "mutants" / "kernels-0.1.15.zip")
    others |= unpack(ROOT / "tests" / "mutants" / "kernels-sm_100.zip")
    return others | {f"{name} sm_90": forms[name] for name in FORMS}


def chosen(function: Function) -> Iterator[LoweredMutant]:
    """The first, the last and one in the middle of all mutants of one kind that change the same."""
    alike: dict[tuple[str, str], list[LoweredMutant]] = {}
    for mutant in lowered_mutants(function):
        alike.setdefault((mutant.kind, mutant.what), []).append(mutant)
    for found in alike.values():
        yield from found if len(found) <= _MOST else (found[0], found[len(found) // 2], found[-1])


def verdict(snapshot: Snapshot, function: Function) -> str:
    """`noticed`, `undecided` or `clean`: what executing another lowered function says."""
    changed = replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": function})
    found = execute(changed, Request(blocks=_BLOCKS))
    if not found.is_clean:
        return "noticed"
    unknown = any(o.verdict == "undecided" for o in found.outputs) or any(found.ordered.values())
    return "undecided" if unknown else "clean"


@cache
def table() -> Mapping[str, Mapping[str, Survivor]]:
    """Kernel -> name of a mutant -> why it survives."""
    found: dict[str, dict[str, Survivor]] = {}
    for group in tomllib.loads(TABLE.read_text(encoding="utf-8"))["survivors"]:
        for kernel, names in group["mutants"].items():
            of_kernel = found.setdefault(kernel, {})
            for name in names:
                assert name not in of_kernel, f"{kernel}: {name} stands there twice"
                of_kernel[name] = Survivor(group["verdict"], group["why"])
    return found


def unexpected(kernel: str, mutants: Iterator[LoweredMutant]) -> list[str]:
    """Return what differs from the table: mutants that survive without a reason, or are noticed in spite of one."""
    snapshot, expected = kernels()[kernel], table().get(kernel, {})
    wrong = []
    for mutant in mutants:
        found, known = verdict(snapshot, mutant.function), expected.get(mutant.name)
        allowed = ("noticed",) if known is None else ("undecided",) if known.verdict == "undecided" else ("clean",)
        if found not in allowed:
            wrong.append(f"{mutant.name}: {found}, {'not in the table' if known is None else known.verdict}")
    return wrong


def difference(kernel: str, name: str) -> str:
    """The lines of TIR that a mutant changes."""
    function = kernels()[kernel].checkpoints["device-tir"]
    mutant = next(m for m in lowered_mutants(function) if m.name == name)
    before, after = (render(f).lines for f in (function, mutant.function))
    return "\n".join(difflib.unified_diff(before, after, kernel, name, lineterm="", n=2))


if __name__ == "__main__":
    print(difference(sys.argv[1], sys.argv[2]))
