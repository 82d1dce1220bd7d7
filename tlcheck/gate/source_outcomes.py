"""Find what two toolchains trace a kernel's file to: whether both sources leave the same outputs.

All that comes after the first pass may be right on either side, and the numbers are others all the same. Where the case
has a reference, it says which side is right; else nobody does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.errors import UsageError
from tlcheck.execute.request import SOURCE, GivenInputs, Request
from tlcheck.execute.stops import Stopped
from tlcheck.gate.outcome import AGREES, DIFFERS, LoweredPair, LoweredSide, OtherKernel, Outcome
from tlcheck.lower.runs import Lowered, tilelang_in_words
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings, Watcher
from tlcheck.run.suite import DeviceOptions
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.results import read_snapshot

_SOURCE_KIND = "as written"  # kind of these outcomes
_CLASSES = {(AGREES, DIFFERS): "wrong", (DIFFERS, AGREES): "fixed", (AGREES, AGREES): "changed"}


def compare_sources(
    pairs: Sequence[LoweredPair], request: Request, settings: Settings, kept: Cache, folder: Path, watcher: Watcher
) -> list[LoweredPair]:
    """The pairs, each with how its sources differ. folder: of files. Raises UsageError for unfit inputs."""
    again = _InputsAgain(settings, folder, watcher)
    found = [replace(pair, traced=_found(pair, request, kept, again)) for pair in pairs]
    return list(_against_references(found, request, settings, folder, watcher))


@dataclass(frozen=True)
class _InputsAgain:
    """A record of where a case's own inputs are made that are not there: nobody has needed them, or a node has them."""

    settings: Settings
    folder: Path
    watcher: Watcher

    def given(self, side: LoweredSide) -> GivenInputs | None:
        """The inputs of a side; None where its case has none, or they cannot be made."""
        made, run = side.inputs, side.result.run
        if made is None or made.failure is not None:
            return None
        if made.given is not None and Path(made.given.file).exists():
            return made.given
        session = Session(replace(self.settings, cluster=None), Path(mkdtemp(dir=self.folder)), self.watcher)
        only = frozenset([(run.name, run.target)])
        (lowered,) = session.lower([Selection(Path(run.file), toolchain=run.toolchain, found=True, only=only)])
        return lowered.inputs.given if lowered.inputs is not None else None


def _found(pair: LoweredPair, request: Request, kept: Cache, again: _InputsAgain) -> OtherKernel | None:
    before, after = pair.before, pair.after
    if before is None or after is None or before.snapshot is None or after.snapshot is None:
        return None
    if _left_the_same(before, after):
        return None
    inputs = before.inputs.digest if before.inputs is not None else ""
    key = key_of(before.digest, after.digest, inputs, repr(request), code_of("source"))
    known = kept.get("traced", key)
    if known is not None:
        return msgspec.json.decode(known, type=OtherKernel | None)
    again.watcher.stage(f"executing {pair.case} {pair.target} as both have it written")
    found = _executed(before, read_snapshot(before.snapshot), read_snapshot(after.snapshot), request, again)
    if found is None or not found.open:  # a busy machine executes less
        kept.put("traced", key, msgspec.json.encode(found))
    return found


def _left_the_same(before: LoweredSide, after: LoweredSide) -> bool:
    """Whether judging has found that: each side's source was executed there, mostly on the same inputs."""
    one, other = (side.inputs.digest if side.inputs is not None else "" for side in (before, after))
    return (
        one == other and bool(before.result.source_digest) and before.result.source_digest == after.result.source_digest
    )


def _executed(
    before: LoweredSide, old: Snapshot, new: Snapshot, request: Request, again: _InputsAgain
) -> OtherKernel | None:
    """Both on the inputs of the older side. What cannot be executed is undecided among the claims, with its reason."""
    from tlcheck.execute.compare.sources import UncomparedPartsError, differing_output  # not where it is kept
    from tlcheck.gate.source_reference import as_traced
    from tlcheck.verdicts.judging import with_given

    if SOURCE not in old.checkpoints or SOURCE not in new.checkpoints or as_traced(old) == as_traced(new):
        return None
    with suppress(Stopped, UsageError, OSError, ValueError, MemoryError, RecursionError):
        if (given := again.given(before)) is not None:
            request = with_given(request, old, given)
        try:
            found = differing_output(old, new, request)
        except UncomparedPartsError as uncompared:
            return OtherKernel("", (), "", "", 0, 0, open=str(uncompared))
        if found is not None:
            name = next(b.name for b in old.checkpoints[SOURCE].buffers if b.data.value == found[0])
            difference = found[1]
            return OtherKernel(
                name, difference.index, difference.expected, difference.got, difference.seed, difference.count
            )
    return None


def _against_references(
    pairs: Sequence[LoweredPair], asked: Request, settings: Settings, folder: Path, watcher: Watcher
) -> Iterator[LoweredPair]:
    """Add what the reference says of either side, where the case has one."""
    for number, pair in enumerate(pairs):
        if pair.traced is None or pair.before is None or pair.after is None:
            yield pair
            continue
        own = folder / f"traced-{number}"
        own.mkdir()
        before, after = _answers((pair.before, pair.after), asked, settings, own, watcher)
        yield replace(pair, traced=replace(pair.traced, before=before, after=after))


def _answers(
    sides: Sequence[LoweredSide], asked: Request, settings: Settings, folder: Path, watcher: Watcher
) -> list[str]:
    """Return `agrees` or `differs` for each side; empty where there is no reference."""
    from tlcheck.gate.source_reference import with_reference  # what executes is imported where something differs
    from tlcheck.run.examination import RunRequest

    request = RunRequest((), settings, DeviceOptions(pythonpath=settings.pythonpath))
    found = [Lowered(side.result.run, side.snapshot) for side in sides]
    answers = with_reference(found, request, asked, folder, watcher)
    said = [answers.get(side.result.run.position) for side in sides]
    return ["" if answer is None else answer.answer for answer in said]


def source_outcomes(compared: LoweredPair) -> Iterator[Outcome]:
    """Yield at most one outcome: the outputs are others, whatever the passes do right."""
    found, after = compared.traced, compared.after
    if found is None or after is None:
        return
    release = tilelang_in_words(after.result.run.toolchain, after.result.run.versions)
    words = f"{release} traces this file to another kernel: {found.words}; {found.judgement}"
    klass = _CLASSES.get((found.before, found.after), "weaker")
    yield Outcome(klass, _SOURCE_KIND, "", f"another kernel, {klass}", words, found.buffer, after.line)
