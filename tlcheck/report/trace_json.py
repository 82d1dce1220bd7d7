"""The form of `tlcheck trace --format json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCHEMA = 1


@dataclass(frozen=True)
class TracedElement:
    """An element, who wrote it and from what.

    value: in words. operation: `store`, the name of a call, `input` where it is as it was given, or `nobody`. lane: the
    thread, as written the iteration; null for what all do together. iteration: of the loops around. tir_line,
    source_line: 0 where they are not known. products: how many were summed. times: how often it stands among what a
    write was made of. first_difference: whether it is the first that is not the same at both levels. sources: the
    elements that it was made of.
    """

    element: str
    value: str
    operation: str
    lane: int | None
    iteration: Mapping[str, int]
    tir_line: int
    source_line: int
    products: int
    times: int
    first_difference: bool
    sources: tuple[TracedElement, ...]


@dataclass(frozen=True)
class TracedRun:
    """One element of one case. agree: whether it is the same as written and as lowered. block: that wrote it.

    seed, inputs: what it was executed on: `the case's` or `random` inputs of this seed. early: with asynchronous copies
    as early as they may be. origin: the first access that differs, in words; empty where that is not known.
    """

    case: str
    target: str
    versions: Mapping[str, str]
    buffer: str
    index: tuple[int, ...]
    block: tuple[int, ...]
    seed: int
    inputs: str
    early: bool
    agree: bool
    written: TracedElement
    lowered: TracedElement
    origin: str = ""


@dataclass(frozen=True)
class TraceReport:
    """Report of `tlcheck trace --format json`. schema: of this form. tlcheck: its version. exit_code: its own."""

    schema: int
    tlcheck: str
    exit_code: int
    runs: tuple[TracedRun, ...]
