"""Describe how kernels are executed on the CPU, from the command line and else from the project."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from tlcheck.cli.parser import count
from tlcheck.config import Config
from tlcheck.errors import UsageError
from tlcheck.execute.request import ALL, Request
from tlcheck.execute.worlds.budget import Budget, parsed


def add_quick_argument(parser: argparse._ActionsContainer) -> None:
    """Add `--quick`, for commands that execute with the defaults."""
    parser.add_argument("--quick", action="store_true", help="proofs only: execute nothing")


def add_execution_arguments(parser: argparse._ActionsContainer) -> None:
    """Add all of `ExecutionOptions`: which blocks and inputs are executed."""
    add_quick_argument(parser)
    parser.add_argument("--blocks", type=_blocks, metavar="N", help="execute at most N blocks, or `all`")
    parser.add_argument("--seeds", type=count, metavar="N", help="sets of inputs to execute (default: 2)")
    parser.add_argument(
        "--budget", metavar="N[,BYTES]", help="statements of one run, and bytes of memory (default: 400000,2G)"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="only the inputs of this seed, as a witness names it")
    parser.add_argument("--block", type=block, metavar="X,Y,Z", help="only this block, as a witness names it")


@dataclass(frozen=True)
class ExecutionOptions:
    """The options that `add_execution_arguments` adds; None where the user says nothing, and the project decides."""

    quick: bool = False
    blocks: int | None = None
    seeds: int | None = None
    budget: str | None = None
    seed: int | None = None
    block: tuple[int, int, int] | None = None

    def request(self, config: Config) -> Request | None:
        """Return how to execute, None for proofs only. Raises UsageError for options that exclude each other."""
        values = (self.blocks, self.seeds, self.seed, self.block, self.budget)
        names = ("--blocks", "--seeds", "--seed", "--block", "--budget")
        given = [name for name, value in zip(names, values, strict=True) if value is not None]
        if self.quick and given:
            raise UsageError(f"{given[0]} has no meaning with --quick, which executes nothing")
        for one, many in (("--seed", "--seeds"), ("--block", "--blocks")):
            if one in given and many in given:
                raise UsageError(f"{one} and {many} exclude each other")
        executes = not self.quick and (config.execute is not False or bool(given))
        return self.certain_request(config) if executes else None

    def certain_request(self, config: Config) -> Request:
        """Return how to execute where that is certain. Raises UsageError."""
        request = Request(blocks=config.blocks, seeds=tuple(range(config.seeds)), budget=self._budget(config))
        if self.names_some or not request.is_usual:
            request = replace(request, budget=replace(request.budget, work=None))  # what is asked for by number is done
        if self.blocks is not None:
            request = replace(request, blocks=self.blocks)
        if self.block is not None:
            request = replace(request, blocks=(self.block,))
        if self.seeds is not None:
            request = replace(request, seeds=tuple(range(self.seeds)))
        return request if self.seed is None else replace(request, seeds=(self.seed,))

    @property
    def words(self) -> tuple[str, ...]:
        """Return what the user says, for other commands that execute the same."""
        found = (("--seeds", self.seeds), ("--budget", self.budget), ("--seed", self.seed))
        words = ["--quick"] if self.quick else []
        words += ["--blocks", "all" if self.blocks == ALL else str(self.blocks)] if self.blocks is not None else []
        words += ["--block", ",".join(map(str, self.block))] if self.block is not None else []
        return (*words, *(word for name, value in found if value is not None for word in (name, str(value))))

    @property
    def names_some(self) -> bool:
        """Whether the user says which blocks or inputs are executed."""
        return (self.blocks, self.seeds, self.seed, self.block) != (None,) * 4

    def _budget(self, config: Config) -> Budget:
        """The user's, else the project's, else the usual one. Raises UsageError."""
        text = self.budget or config.budget
        try:
            return parsed(text) if text else Budget()
        except ValueError as error:
            place = "--budget" if self.budget else config.place("budget") or "budget"
            raise UsageError(f"{place}: {error}") from error


def _blocks(text: str) -> int:
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor `all`")
    return ALL if text == "all" else count(text)


def block(text: str) -> tuple[int, int, int]:
    """A block's place in the grid, as an option's value."""
    parts = [int(part) for part in text.split(",")]
    if not 1 <= len(parts) <= 3 or min(parts) < 0:
        raise argparse.ArgumentTypeError(f"{text} is no block: give X, X,Y or X,Y,Z")
    return (*parts, 0, 0)[0], (*parts, 0, 0)[1], (*parts, 0, 0)[2]
