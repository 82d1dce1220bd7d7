"""`tlcheck cost`: what each access of a kernel costs, counted by executing it on the CPU."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TextIO

from tlcheck.cache.store import open_cache
from tlcheck.cli.execution_options import ExecutionOptions
from tlcheck.cli.lowered import lowered
from tlcheck.cli.options import CASE_HELP, LoweringOptions, add_lowering_arguments
from tlcheck.cli.parser import Parser, count, read
from tlcheck.cli.projects import selections
from tlcheck.config import read_config
from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.cost.measure import BLOCKS, cost_of
from tlcheck.execute.request import ALL
from tlcheck.execute.stops import Stopped
from tlcheck.exits import exit_code
from tlcheck.gate.compiled_cost import CompiledCost, Costed, compiled_cost
from tlcheck.gate.nvcc import compiles_for, find_compiler, uncompiled
from tlcheck.gate.sides import bench_of
from tlcheck.lower.runs import Lowered
from tlcheck.page.cost_page import cost_page
from tlcheck.report import cost_json, cost_text
from tlcheck.report.console import console
from tlcheck.report.outputs import Outputs
from tlcheck.report.shared import put
from tlcheck.targets.lookup import USUAL
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.checking import saved, with_inputs
from tlcheck.verdicts.own_inputs import on_own_inputs
from tlcheck.verdicts.results import read_snapshot

FORMATS = ("text", "json", "html")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("cases", nargs="+", metavar="CASE", help=CASE_HELP)
    parser.add_argument(
        "--blocks", type=_blocks, default=BLOCKS, metavar="N", help=f"blocks that run, or `all` (default: {BLOCKS})"
    )
    parser.add_argument("--all", action="store_true", help="every access site, not only the first ones")
    parser.add_argument("--compile", action="store_true", help="compile it with nvcc, too; needs no GPU")
    add_lowering_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="format of the report (default: text)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file of the report (default: stdout)")


def run(args: argparse.Namespace) -> int:
    config = read_config(Path.cwd())
    request = ExecutionOptions(blocks=args.blocks, seeds=1).certain_request(config)
    lowering = read(LoweringOptions, args)
    settings = with_inputs(lowering.settings(config), request)
    chosen = selections(args.cases, config, lowering.for_kernel_files)
    target = Outputs((args.format,), args.output)
    compiler = find_compiler() if args.compile and any(map(compiles_for, settings.arch or USUAL)) else None
    kept = open_cache(settings.cache)

    def compiled(done: Lowered, cost: KernelCost) -> CompiledCost | None:
        if compiler is None or done.snapshot is None:
            return None
        bench = bench_of(kept, compiler, resolve(done.run.toolchain, settings.requirements))
        made = bench.compiled(done.snapshot, done.hash)
        return compiled_cost(compiler.version, made, cost, done.run.target) if made is not None else None

    found: list[Costed] = []
    sources: dict[str, list[str]] = {}
    failures: list[str] = []
    for done in chain(saved(chosen), lowered([s for s in chosen if not s.is_snapshot], settings)):
        if done.snapshot is None:
            assert done.failure is not None
            failures.append(f"{done.run.case} {done.run.target}: {done.failure.phase}: {done.failure.message}")
            continue
        snapshot = read_snapshot(done.snapshot)
        try:
            own = on_own_inputs(done, snapshot, request)
            cost = cost_of(snapshot, own)
            found.append(Costed(done.run, own.inputs, cost, compiled(done, cost)))
            sources[done.run.file] = lines_of(snapshot.file)
        except Stopped as stopped:
            failures.append(f"{done.run.case} {done.run.target}: {stopped}")
    code = exit_code(found=any(not one.cost.resident for one in found), unchecked=bool(failures))
    target.deliver(
        "cost",
        {
            "text": lambda file: _write_text(file, found, everything=args.all),
            "json": lambda file: put(file, cost_json.render_json(found, failures, code)),
            "html": lambda file: put(file, cost_page(found, sources)),
        },
    )
    sys.stdout.flush()
    for line in uncompiled(one.run.target for one in found) if args.compile else ():
        print(f"tlcheck: {line}", file=sys.stderr)
    for reason in failures:
        print(f"tlcheck: not counted: {reason}", file=sys.stderr)
    return code


def _write_text(file: TextIO, found: Sequence[Costed], *, everything: bool) -> None:
    for one in found:
        cost_text.write(console(file), one, everything=everything)


def _blocks(text: str) -> int:
    return ALL if text == "all" else count(text)


def lines_of(file: str) -> list[str]:
    """The lines of a kernel's file; none where it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
