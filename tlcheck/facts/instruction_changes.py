"""Changes of the instructions that touch memory or compute on tensor cores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tlcheck.facts.change import Change
from tlcheck.facts.kernel_facts import AccessFacts, Count, Facts

Profile = Mapping[str, Count]  # instruction -> how often in a block
_OF_WARPGROUPS = ("wgmma", "tcgen05")  # products that are faster than those of a warp (`mma`)
_FAST = ("TMA", "async copy", "ldmatrix", "stmatrix")


def access_changes(before: Facts, after: Facts, *operations: str) -> Iterator[Change]:
    """Yield changes of each buffer that both kernels have; a pass's own are compared within one release only."""
    known = {b.name for b in before.buffers} & {b.name for b in after.buffers}
    old, new = (_by_buffer(facts, operations) for facts in (before, after))
    for key in sorted(old.keys() | new.keys()):
        if key[0] not in known and before.release != after.release:
            continue
        one, other = old.get(key, []), new.get(key, [])
        if key[1] == "write" and (one or other)[0].space == "shared" and not (one and other):
            continue  # by a bulk copy: the tensor in global memory that it reads tells
        change = _rewritten(*key, _profile(one), _profile(other))
        if change is not None:
            yield Change(*change, slower=_is_slower(one, other))


def _by_buffer(facts: Facts, operations: tuple[str, ...]) -> dict[tuple[str, str], list[AccessFacts]]:
    found: dict[tuple[str, str], list[AccessFacts]] = defaultdict(list)
    for access in facts.accesses:
        if access.operation in operations:
            found[access.buffer, access.operation].append(access)
    return found


def _profile(accesses: list[AccessFacts]) -> dict[str, Count]:
    return {access.instruction: access.count for access in accesses}


def tensor_core_changes(before: Facts, after: Facts) -> Iterator[Change]:
    """Yield changes of the kernel as a whole: gemms have no names."""
    old, new = ({i.name: i.count for i in facts.instructions} for facts in (before, after))
    if not _is_same(old, new):
        lost = any(_has(form, old) and not _has(form, new) for form in _OF_WARPGROUPS)
        kinds, others = _kinds(old), _kinds(new)
        different = others if others != kinds else f"other {others}"
        detail = f"{_counts(old)} -> {_counts(new)} in a block"
        yield Change("tensor cores", "kernel", kinds, different, detail, lost and bool(new))


def _has(form: str, profile: Profile) -> bool:
    return any(name.startswith(form) for name in profile)


def _kinds(profile: Profile) -> str:
    """`wgmma` of `wgmma ss m64n64k16 ...`, `tl::gemm_ss` of a template: shapes differ from kernel to kernel."""
    return ", ".join(dict.fromkeys(name.partition("<")[0].partition(" ")[0] for name in profile)) or "none"


def _is_same(old: Profile, new: Profile) -> bool:
    return old.keys() == new.keys() and all(count.same(new[name]) for name, count in old.items())


def _rewritten(subject: str, kind: str, old: Profile, new: Profile) -> tuple[str, str, str, str, str] | None:
    """The fields of a change; None where both sides issue the same."""
    if _is_same(old, new):
        return None
    if old.keys() == new.keys():
        more = sum(c.number for c in new.values()) > sum(c.number for c in old.values())
        what = f"{', '.join(old)} in a block"
        return (
            f"{kind} count",
            subject,
            what,
            f"{'more' if more else 'fewer'}",
            f"{_counts(old)} -> {_counts(new)} in a block",
        )
    if len(old) == len(new) == 1:
        (one, few), (other, many) = next(iter(old.items())), next(iter(new.items()))
        if few.number and many.number % few.number == 0:
            return kind, subject, one, _times(many.number // few.number, other), ""
        if many.number and few.number % many.number == 0:
            return kind, subject, _times(few.number // many.number, one), other, ""
    return kind, subject, _names(old), _names(new), f"{_counts(old)} -> {_counts(new)} in a block"


def _times(number: int, name: str) -> str:
    return name if number == 1 else f"{number} x {name}"


def _names(profile: Profile) -> str:
    return ", ".join(profile) or "none"


def _counts(profile: Profile) -> str:
    return ", ".join(f"{count} {name}" for name, count in profile.items()) or "none"


def _is_slower(old: list[AccessFacts], new: list[AccessFacts]) -> bool:
    """Narrower and therefore more instructions, more atomics, or a plain access in place of a bulk copy."""
    if not old or not new:
        return False
    few, many = (sum(a.count.number for a in accesses) for accesses in (old, new))
    if {a.instruction for a in old} == {a.instruction for a in new}:
        return old[0].operation == "atomic" and many > few
    narrower = max(a.elements for a in old) > max(a.elements for a in new)
    lost = all(a.instruction.startswith(_FAST) for a in old) and not any(a.instruction.startswith(_FAST) for a in new)
    return many > few and (narrower or lost)
