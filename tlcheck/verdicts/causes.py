"""One cause, one finding: what one origin explains stands under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tlcheck.program.parted_tiles import said
from tlcheck.reasons import SOURCE_STOPS, SOURCE_UNCLEAR
from tlcheck.verdicts.claim import REFUTED, UNDECIDED, Claim, Finding, Kind, is_apart
from tlcheck.witness import Accesses

STOPPED = "as lowered: "  # how the reason of an output begins whose kernel an access stopped
_BOUNDS, _ATOMIC_BOUNDS, _ADDED, _PART = "TLS002", "TLA007", "TLA005", "TLS012"
_EXPLAINS: Mapping[Kind, tuple[Kind, ...]] = {
    "atomic": ("legality", "order", "output"),
    "legality": ("output",),
    "order": ("output",),
}


def by_cause(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """Each refuted claim with those that it explains under `also`.

    A wrong atomic leaves a wrong output; so do a race and an access out of bounds: of the same buffer, or of the one at
    which the output goes wrong. One wait or barrier that would order several pairs of accesses is missing once. What is
    on other buffers may have a cause of its own and stays: an excuse for one must not cover the other. A reduction of
    what is wrong begins there (`compare.derived`): nothing more can be said of it. An atomic that the device has wrong
    and the execution right explains that nothing is known of the outputs; so does an access that stops the kernel. An
    atomic whose index leaves its buffer as written is not compared, and is no fault of TileLang's where it leaves it as
    lowered too: the author's is that index. So it is where TileLang adds what the atomic reads beyond a tile. Nor is
    the atomic of a tile compared that only some threads of the block reach.
    """
    explained: dict[int, int] = {}
    for place in range(len(claims)):
        cause = next(_causes(place, claims), None)
        if cause is not None:
            explained[place] = cause
    found = []
    for place, claim in enumerate(claims):
        if place not in explained:
            also = [claims[other] for other in explained if _root(other, explained) == place]
            found.append(_with_weight(replace(claim, also=(*claim.also, *also))))
    return tuple(found)


def _is_bound(claim: Claim) -> bool:
    """Whether it is an index of the source that is out of bounds."""
    return (
        (claim.kind, claim.verdict) == ("source", REFUTED)
        and claim.finding is not None
        and claim.finding.rule == _BOUNDS
    )


def _is_of_index(atomic: Claim, bound: Claim) -> bool:
    """Whether an atomic does as lowered what an index on its line does as written: it leaves a buffer, or reads and
    adds beyond one.
    """
    if atomic.finding is None or atomic.source.line != bound.source.line:
        return False
    same = atomic.buffer == bound.buffer
    return (atomic.finding.rule == _ATOMIC_BOUNDS and same) or (atomic.finding.rule == _ADDED and not same)


def _is_part(claim: Claim) -> bool:
    """Whether it is a tile operator of the source that only some threads of the block reach."""
    return claim.kind == "source" and claim.finding is not None and claim.finding.rule == _PART


def _is_said_of(claim: Claim, part: Claim) -> bool:
    """Whether a claim is undecided because of such an operator."""
    return claim.reason.startswith(said(part.buffer, part.source.line))


def _root(place: int, explained: Mapping[int, int]) -> int:
    """The claim that explains one, and is explained by none itself."""
    while place in explained:
        place = explained[place]
    return place


def _with_weight(claim: Claim) -> Claim:
    """A hazard that explains a wrong value is an error."""
    found = claim.finding
    if found is None or found.weight == "error" or not any(also.kind == "output" for also in claim.also):
        return claim
    wrong = any(also.verdict == REFUTED and also.kind == "output" for also in claim.also)
    return replace(claim, finding=replace(found, weight="error")) if wrong else claim


def _causes(number: int, claims: Sequence[Claim]) -> Iterator[int]:
    """The places of the claims that explain another, the most basic kind first."""
    claim = claims[number]
    if (claim.kind, claim.verdict) == ("output", UNDECIDED):
        stopped = claim.reason.startswith(STOPPED)
        for place, other in enumerate(claims):
            if is_apart(other) or (stopped and (other.kind, other.verdict) == ("legality", REFUTED)):
                yield place
    if (claim.kind, claim.verdict, claim.code) == ("atomic", UNDECIDED, SOURCE_STOPS.code):
        yield from (place for place, other in enumerate(claims) if _is_bound(other) and other.buffer == claim.buffer)
    if (claim.kind, claim.verdict, claim.code) == ("atomic", UNDECIDED, SOURCE_UNCLEAR.code):
        yield from (place for place, other in enumerate(claims) if _is_part(other) and _is_said_of(claim, other))
    if claim.verdict != REFUTED:
        return
    yield from (place for place, other in enumerate(claims) if _is_bound(other) and _is_of_index(claim, other))
    for kind, consequences in _EXPLAINS.items():
        for place, other in enumerate(claims):
            follows = claim.kind in consequences and (other.kind, other.verdict) == (kind, REFUTED)
            if follows and (other.buffer == claim.buffer or _is_behind(other, claim)):
                yield place
    for place, other in enumerate(claims[:number]):
        if other.kind == claim.kind and other.verdict == REFUTED and _is_one_cause(other, claim):
            yield place


def _is_behind(cause: Claim, claim: Claim) -> bool:
    """Whether a claim goes wrong at what another one is about."""
    if cause.kind == "atomic":
        return claim.kind in ("output", "legality") and _returns(cause)
    origin = None if claim.finding is None else claim.finding.origin
    own = None if cause.finding is None else cause.finding.origin
    if origin is None or own is None or cause.kind != "order":
        return False
    return origin.kind in ("early", "unordered", "overwritten") and bool({*origin.buffers} & {*own.buffers})


def _returns(atomic: Claim) -> bool:
    """Whether an atomic gives what was there before, on which anything may depend: a value, or where it is stored."""
    return any("ret" in name.lower() for name in (atomic.call, *atomic.instructions))


def _is_one_cause(first: Claim, second: Claim) -> bool:
    """Whether two claims of one kind have one cause: the same origin; what is missing between two pairs of accesses."""
    one, other = first.finding, second.finding
    if one is None or other is None or (one.rule, one.blame) != (other.rule, other.blame):
        return False
    if first.kind == "order":
        return first.buffer == second.buffer or _share_a_gap(one, other)
    origin, same = one.origin, other.origin
    return first.kind == "output" and origin is not None and same is not None and origin.words == same.words


def _share_a_gap(one: Finding, other: Finding) -> bool:
    """Whether what is missing in one place would order both pairs of accesses."""
    if one.origin is None or other.origin is None or one.origin.missing != other.origin.missing:
        return False
    (first, last), (start, end) = _span(one), _span(other)
    return max(first, start) < min(last, end)


def _span(found: Finding) -> tuple[int, int]:
    """The lines of the TIR between two accesses; 0, 0 where the second comes first, in a later step of a loop."""
    witness = found.witness
    if not isinstance(witness, Accesses) or witness.second is None:
        return 0, 0
    first, last = witness.first.line, witness.second.line
    return (first, last) if 0 < first < last else (0, 0)
