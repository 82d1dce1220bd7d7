"""How kernels are executed on the CPU, from the command line and else from the project."""

from __future__ import annotations

import argparse
from dataclasses import replace

from tlcheck.cli.options import count
from tlcheck.config import Config
from tlcheck.errors import UsageError
from tlcheck.execute.reasons import Stopped
from tlcheck.execute.request import ALL, Request
from tlcheck.execute.worlds.budget import Budget, parsed
from tlcheck.lower.runs import Lowered
from tlcheck.lower.session import Settings
from tlcheck.snapshot.ir import Snapshot


def add_quick_argument(parser: argparse._ActionsContainer) -> None:
    """For commands that execute with the defaults."""
    parser.add_argument("--quick", action="store_true", help="proofs only: execute nothing")


def add_execution_arguments(parser: argparse._ActionsContainer) -> None:
    """Which blocks and inputs are executed. None where the user says nothing: see `request_of`."""
    add_quick_argument(parser)
    parser.add_argument("--blocks", type=_blocks, metavar="N", help="blocks that are executed at most, or `all`")
    parser.add_argument("--seeds", type=count, metavar="N", help="sets of inputs that are executed (default: 2)")
    parser.add_argument(
        "--budget", metavar="N[,BYTES]", help="statements of one run, and bytes of memory (default: 400000,2G)"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="only the inputs of this seed, as a witness names it")
    parser.add_argument("--block", type=block, metavar="X,Y,Z", help="only this block, as a witness names it")


def request_of(args: argparse.Namespace, config: Config, default: bool = True) -> Request | None:
    """How to execute, None for proofs only. default: whether to execute where the project says nothing.

    Raises UsageError for options that exclude each other.
    """
    given = [
        f"--{name}" for name in ("blocks", "seeds", "seed", "block", "budget") if getattr(args, name, None) is not None
    ]
    if args.quick and given:
        raise UsageError(f"{given[0]} has no meaning with --quick, which executes nothing")
    for one, many in (("seed", "seeds"), ("block", "blocks")):
        if f"--{one}" in given and f"--{many}" in given:
            raise UsageError(f"--{one} and --{many} exclude each other")
    wanted = default if config.execute is None else config.execute
    if args.quick or not (wanted or given):
        return None
    return asked(args, config)


def with_inputs(settings: Settings, request: Request | None) -> Settings:
    """How to lower what is executed: cases make their own inputs, for its seeds."""
    return settings if request is None else replace(settings, seeds=request.seeds)


def on_own_inputs(done: Lowered, snapshot: Snapshot, request: Request) -> Request:
    """The request on the inputs that the case declares, if any. Raises UsageError, and Stopped where these raise."""
    if done.inputs is None:
        return request
    failure = done.inputs.failure
    if failure is not None:
        message = f"{failure.phase}: {failure.message}"
        raise UsageError(f"{done.run.case}: {message}") if failure.kind == "usage" else Stopped(message)
    assert done.inputs.given is not None
    try:
        from tlcheck.verdicts.judging import with_given  # which imports all that proves and executes

        return with_given(request, snapshot, done.inputs.given)
    except UsageError as error:
        raise UsageError(f"{done.run.case}: {done.inputs.given.where}: {error}") from error


def asked(args: argparse.Namespace, config: Config) -> Request:
    """How to execute where that is certain. Raises UsageError."""
    request = Request(blocks=config.blocks, seeds=tuple(range(config.seeds)), budget=_budget(args, config))
    blocks, seeds, seed, block = (getattr(args, name, None) for name in ("blocks", "seeds", "seed", "block"))
    if (blocks, seeds, seed, block) != (None,) * 4 or not request.is_usual:
        request = replace(request, budget=replace(request.budget, work=None))  # what is asked for by number is done
    if blocks is not None:
        request = replace(request, blocks=blocks)
    if block is not None:
        request = replace(request, blocks=(block,))
    if seeds is not None:
        request = replace(request, seeds=tuple(range(seeds)))
    return request if seed is None else replace(request, seeds=(seed,))


def _budget(args: argparse.Namespace, config: Config) -> Budget:
    """The user's, else the project's, else the usual one. Raises UsageError."""
    said = getattr(args, "budget", None)
    try:
        return parsed(said or config.budget) if said or config.budget else Budget()
    except ValueError as error:
        place = "--budget" if said else config.place("budget") or "budget"
        raise UsageError(f"{place}: {error}") from error


def _blocks(text: str) -> int:
    return ALL if text == "all" else count(text)


def block(text: str) -> tuple[int, int, int]:
    """A block's place in the grid, as an option's value."""
    parts = [int(part) for part in text.split(",")]
    if not 1 <= len(parts) <= 3 or min(parts) < 0:
        raise argparse.ArgumentTypeError(f"{text} is no block: give X, X,Y or X,Y,Z")
    return (*parts, 0, 0)[0], (*parts, 0, 0)[1], (*parts, 0, 0)[2]
