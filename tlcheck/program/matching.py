"""Which atomics in the lowered IR come from which atomic as written in the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlcheck.program.atomics import Pointer, Site
from tlcheck.program.walk import Program, subexpressions


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Atomics as written and the sites that come from them; several as written only where they cannot be told apart.

    orphans: sites on memory that no atomic as written names (the destination was redirected).
    """

    written: tuple[Site, ...]
    sites: tuple[Site, ...]
    orphans: tuple[Site, ...] = ()


def match(intent: Program, written: Sequence[Site], lowered: Program, sites: Sequence[Site]) -> list[Match]:
    """Every written atomic in exactly one match, in program order of the first."""
    roots = {w.target.root for w in written}
    orphans = [s for s in sites if s.target.root not in roots]
    matches: list[Match] = []
    for root in dict.fromkeys(w.target.root for w in written):
        own = [w for w in written if w.target.root == root]
        there = [s for s in sites if s.target.root == root]
        matches.extend(_divide(intent, own, lowered, there))
    return [_adopt(intent, m, lowered, orphans) if orphans and not m.sites else m for m in matches]


def _divide(intent: Program, written: list[Site], lowered: Program, sites: list[Site]) -> list[Match]:
    """Tell atomics on one destination apart: by what they do and read, then by order."""
    if len(written) == 1:
        return [Match((written[0],), tuple(sites))]
    signatures = [_signature(intent, w) for w in written]
    there = [_signature(lowered, s) for s in sites]
    matches: list[Match] = []
    for signature in dict.fromkeys(signatures):
        own = [w for w, s in zip(written, signatures, strict=True) if s == signature]
        theirs = [x for x, s in zip(sites, there, strict=True) if s == signature]
        if len(own) == len(theirs):
            matches.extend(Match((w,), (x,)) for w, x in zip(own, theirs, strict=True))
        else:
            matches.append(Match(tuple(own), tuple(theirs)))
    if sum(len(m.sites) for m in matches) == len(sites):
        return matches
    if len(written) == len(sites):
        return [Match((w,), (x,)) for w, x in zip(written, sites, strict=True)]
    return [Match(tuple(written), tuple(sites))]


def _signature(program: Program, site: Site) -> tuple[object, ...]:
    return (site.operation, site.returns, _reads(program, site))


def _reads(program: Program, site: Site) -> frozenset[str]:
    if isinstance(site.value, Pointer):
        return frozenset((site.value.root,))
    return frozenset(
        program.roots.of(e.buffer.data) for e in subexpressions(site.value) if e.op == "load" and e.buffer is not None
    )


def _adopt(intent: Program, found: Match, lowered: Program, orphans: list[Site]) -> Match:
    """A match without sites takes the orphans that do the same: as its sites where all shared memory has become one
    buffer.
    """
    operations = {w.operation for w in found.written}
    root = found.written[0].target.root
    reads = {r for w in found.written for r in _reads(intent, w)}
    own = [o for o in orphans if o.operation in operations]
    if _shared(intent, root):
        return Match(found.written, tuple(o for o in own if _shared(lowered, o.target.root)))
    own = [o for o in own if o.target.root.startswith(root) or reads & _reads(lowered, o)]
    return Match(found.written, (), tuple(own))


def _shared(program: Program, root: str) -> bool:
    buffer = program.buffers.get(root)
    return buffer is not None and buffer.scope.startswith("shared")
