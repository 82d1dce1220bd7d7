"""Find which atomics in the lowered IR come from which atomic of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlcheck.program.atomics import Pointer, Site
from tlcheck.program.walk import Program, subexpressions


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Atomics of the source and the sites that come from them; several only where they cannot be told apart.

    orphans: sites on memory that no atomic of the source names (the destination was redirected).
    """

    source: tuple[Site, ...]
    sites: tuple[Site, ...]
    orphans: tuple[Site, ...] = ()


def match(intent: Program, source: Sequence[Site], lowered: Program, sites: Sequence[Site]) -> list[Match]:
    """Every written atomic in exactly one match, in program order of the first."""
    roots = {w.target.root for w in source}
    orphans = [s for s in sites if s.target.root not in roots]
    matches: list[Match] = []
    for root in dict.fromkeys(w.target.root for w in source):
        own = [w for w in source if w.target.root == root]
        there = [s for s in sites if s.target.root == root]
        matches.extend(_divide(intent, own, lowered, there))
    return [_adopt(intent, m, lowered, orphans) if orphans and not m.sites else m for m in matches]


def _divide(intent: Program, source: list[Site], lowered: Program, sites: list[Site]) -> list[Match]:
    """Tell atomics on one destination apart: by what they do and read, then by order."""
    if len(source) == 1:
        return [Match((source[0],), tuple(sites))]
    signatures = [_signature(intent, w) for w in source]
    there = [_signature(lowered, s) for s in sites]
    matches: list[Match] = []
    for signature in dict.fromkeys(signatures):
        own = [w for w, s in zip(source, signatures, strict=True) if s == signature]
        theirs = [x for x, s in zip(sites, there, strict=True) if s == signature]
        if len(own) == len(theirs):
            matches.extend(Match((w,), (x,)) for w, x in zip(own, theirs, strict=True))
        else:
            matches.append(Match(tuple(own), tuple(theirs)))
    if sum(len(m.sites) for m in matches) == len(sites):
        return matches
    if len(source) == len(sites):
        return [Match((w,), (x,)) for w, x in zip(source, sites, strict=True)]
    return [Match(tuple(source), tuple(sites))]


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
    operations = {w.operation for w in found.source}
    root = found.source[0].target.root
    reads = {r for w in found.source for r in _reads(intent, w)}
    own = [o for o in orphans if o.operation in operations]
    if _shared(intent, root):
        return Match(found.source, tuple(o for o in own if _shared(lowered, o.target.root)))
    own = [o for o in own if o.target.root.startswith(root) or reads & _reads(lowered, o)]
    return Match(found.source, (), tuple(own))


def _shared(program: Program, root: str) -> bool:
    buffer = program.buffers.get(root)
    return buffer is not None and buffer.scope.startswith("shared")
