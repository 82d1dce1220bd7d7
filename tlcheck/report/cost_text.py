"""The cost of a kernel for people: its bounds, and a table by source line, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tlcheck.cost.figures import short
from tlcheck.cost.kernel_cost import KernelCost, SiteCost
from tlcheck.gate.compiled_cost import CompiledCost, Costed
from tlcheck.report.console import OPEN_BOX
from tlcheck.targets.lookup import target
from tlcheck.targets.target import Target
from tlcheck.verdicts.words import plural

_FEW = 20  # sites that are shown unless all are asked for


def write(console: Console, costed: Costed, *, everything: bool) -> None:
    """One kernel."""
    run, inputs, cost = costed.run, costed.inputs, costed.cost
    console.print(
        Text(f"{run.case} {run.target} {run.tilelang}: {scope_in_words(cost)}, {inputs} inputs", "bold"), soft_wrap=True
    )
    refused = unlaunchable(cost, target(run.target))
    for line in (*([refused] if refused else []), *summary_in_words(cost), *compiled_in_words(costed.compiled)):
        console.print(Text(f"  {line}"), soft_wrap=True, highlight=False)
    shown = cost.sites if everything else cost.sites[:_FEW]
    console.print(_table(shown), soft_wrap=True, highlight=False)
    if len(shown) < len(cost.sites):
        console.print(Text(f"  {plural(len(cost.sites) - len(shown), 'site')} more: --all"), soft_wrap=True)
    for line in dict.fromkeys(f"  {_where(site)}: {site.limit}: {site.advice}" for site in shown if site.advice):
        console.print(Text(line), soft_wrap=True, highlight=False)


def scope_in_words(cost: KernelCost) -> str:
    """Return which blocks were counted, and what for."""
    if cost.blocks == cost.of:
        return f"all {cost.of} blocks counted" if cost.of > 1 else "its one block counted"
    unlike = cost.of - cost.like
    near = f"; {unlike} more by the nearest ones" if unlike else ""
    return f"{cost.blocks} of {cost.of} blocks counted, for {cost.like} with the same guards and loop bounds{near}"


def unlaunchable(cost: KernelCost, target: Target) -> str:
    """Return why the kernel cannot be launched; empty where it can."""
    if cost.resident:
        return ""
    return (
        f"a block asks for {cost.shared_bytes:,} bytes of shared memory, and {target} has {target.limits.shared:,}:"
        " the kernel cannot be launched; use smaller tiles, or fewer stages"
    )


def summary_in_words(cost: KernelCost) -> Iterator[str]:
    """Lines about the kernel as a whole."""
    yield (
        f"global memory: {short(cost.global_bytes)}B in sectors, {short(cost.once)}B if each tensor is moved once;"
        f" copies in flight: {cost.in_flight:,} bytes of a block"
    )
    if cost.shared_bytes or not any(site.space == "shared" for site in cost.sites):
        yield (
            f"shared memory of a block: {cost.shared_bytes:,} bytes; at most {plural(cost.resident, 'block')} on a"
            f" multiprocessor, {_limit(cost.limiter)}"
        )
    if cost.flops:
        flops = ", ".join(f"{short(count)}FLOP of {dtype}" for dtype, count in cost.flops.items())
        yield f"tensor cores: {flops}"
    if cost.arithmetic:
        flops = ", ".join(f"{short(count)}FLOP of {dtype}" for dtype, count in cost.arithmetic.items())
        yield f"arithmetic: {flops}"
    if cost.intensity:
        yield f"{cost.intensity:g} operations for each byte of global memory"
    if cost.floors:
        bounds = ", ".join(f"{floor.seconds * 1e6:.3g} us by {floor.unit}" for floor in cost.floors)
        yield f"never faster than, by the published peaks of {cost.part}: {bounds}"


def compiled_in_words(compiled: CompiledCost | None) -> Iterator[str]:
    """Lines about what nvcc made of it; none where it was not asked."""
    if compiled is None:
        return
    if compiled.error:
        yield f"nvcc {compiled.nvcc} refuses it: {compiled.error}"
        return
    spills = f"{compiled.spills:,} bytes of spills" if compiled.spills else "no spills"
    yield (
        f"nvcc {compiled.nvcc}, in {compiled.seconds:.1f} s: {compiled.registers} registers of a thread, {spills};"
        f" at most {plural(compiled.resident, 'block')} on a multiprocessor, {_limit(compiled.limiter)}"
    )
    if compiled.instructions:
        counts = ", ".join(f"{count} {name}" for name, count in compiled.instructions.items())
        yield f"instructions in its text: {counts}"


def _limit(limiter: str) -> str:
    return "the device's maximum" if limiter == "blocks" else f"limited by {limiter}"


def _table(sites: tuple[SiteCost, ...]) -> Table:
    table = Table(box=OPEN_BOX, pad_edge=False)
    for name in ("line", "TIR", "share", "access"):
        table.add_column(name)
    for name in ("requests", "per request", "useful", "limit"):
        table.add_column(name, justify="right" if name != "limit" else "left")
    for site in sites:
        table.add_row(
            str(site.line or "?"),
            str(site.tir_line or "?"),
            f"{site.share:.1%}" if site.share else "",
            site.access,
            short(site.requests),
            counts_in_words(site),
            f"{site.useful / site.moved:.0%}" if site.moved and site.space == "global" else "",
            site.limit,
        )
    return table


def counts_in_words(site: SiteCost) -> str:
    """Return what one request takes: `32 wavefronts (ideal: 4)`."""
    if site.space == "global":
        return f"{site.sectors_per_request:.4g} sectors"
    if site.wavefronts:
        conflicts = f" (ideal: {site.ideal / site.requests:.3g})" if site.wavefronts != site.ideal else ""
        return f"{site.wavefronts / site.requests:.3g} wavefronts{conflicts}"
    if site.space == "shared":
        return f"{short(site.moved // site.requests)}B"
    if site.flops:
        return f"{short(site.flops // site.requests)}FLOP"
    return ""


def _where(site: SiteCost) -> str:
    return f"line {site.line}" if site.line else f"TIR line {site.tir_line}"
