"""The gate's result in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tlcheck.exits import CLEAN, FOUND
from tlcheck.gate.gate import Gate
from tlcheck.gate.groups import files_in_words
from tlcheck.gate.outcome import CLASSES, LoweredPair
from tlcheck.lower.runs import tilelang_in_words
from tlcheck.run.device_results import FAILED, NOT_RUN, PASSED
from tlcheck.verdicts.claim import REFUTED
from tlcheck.verdicts.words import plural

_SLOWEST = 5


def verdict_in_words(gate: Gate) -> str:
    """`FAIL: tilelang 0.1.7 -> 0.1.15, 74 cases (146 runs): 2 broken, 9 slower-risk, 3 fixed, 100 same`."""
    counts = gate.counts()
    cases = len({compared.case for compared in gate.comparisons})
    runs = f" ({plural(len(gate.comparisons), 'run')})" if len(gate.comparisons) > cases else ""
    found = ", ".join(f"{counts[klass]} {klass}" for klass in CLASSES if counts[klass])
    accepted = sum(1 for c in gate.comparisons for o in c.outcomes if o.accepted)
    also = f"; {plural(accepted, 'difference')} accepted" if accepted else ""
    shown = f"; on the device: {_statuses(gate)}" if gate.device is not None else ""
    shown += "; most tests did not run to their end" if gate.is_partial else ""
    word = {CLEAN: "PASS", FOUND: "FAIL"}.get(gate.exit_code, "INCOMPLETE")
    return f"{word}: tilelang {toolchains_in_words(gate)}, {plural(cases, 'case')}{runs}: {found}{also}{shown}"


def _statuses(gate: Gate) -> str:
    """`5 passed, 1 failed, 2 not run`: of the new toolchain's kernels."""
    sides = [compared.after for compared in gate.comparisons if compared.after is not None]
    counts = Counter(side.device.status for side in sides if side.device is not None)
    return ", ".join(f"{counts[status]} {status}" for status in (PASSED, FAILED, NOT_RUN) if counts[status])


def device_in_words(gate: Gate) -> str:
    """`NVIDIA H200 (sm_90), CUDA 13.0, torch 2.11.0; 3 seeds`; empty where nothing was run."""
    run = gate.device
    if run is None or not (found := run.after.device or run.before.device):
        return ""
    options = run.wanted.options
    exact = ", exact sums too" if options.exact else ""
    place = f"{found['name']} ({found['arch']}), CUDA {found['cuda']}, torch {found['torch']}, {run.date}"
    return f"{place}; {plural(options.seeds, 'seed')}, {plural(options.repeats, 'run')} of each{exact}"


def toolchains_in_words(gate: Gate) -> str:
    """`0.1.7 -> 0.1.15`; what the user named in brackets, where that says something else."""
    before, after = gate.versions
    return f"{tilelang_in_words(gate.before, before)} -> {tilelang_in_words(gate.after, after)}"


def seconds_in_words(gate: Gate) -> str:
    """`lowering: 60.1 s -> 92.9 s of processor time (1.5 times)`; empty where nothing was measured."""
    old, new = gate.seconds
    if not old or not new:
        return ""
    return f"lowering: {old:.1f} s -> {new:.1f} s of processor time ({new / old:.1f} times)"


def slowest_in_words(gate: Gate) -> str:
    """The cases that take longest to lower with either toolchain, each for its slowest target."""
    found: dict[str, tuple[float, float]] = {}
    for compared in gate.comparisons:
        if compared.before and compared.after and compared.before.seconds and compared.after.seconds:
            times = (compared.before.seconds, compared.after.seconds)
            found[compared.case] = max(found.get(compared.case, (0.0, 0.0)), times, key=max)
    slowest = sorted(found.items(), key=lambda item: -max(item[1]))[:_SLOWEST]
    return "; ".join(f"{case} {old:.1f} s -> {new:.1f} s" for case, (old, new) in slowest)


def unchanged_in_words(gate: Gate) -> str:
    """`unchanged verdicts: 90 proved, 3 refuted`: of claims with both toolchains."""
    found: Counter[str] = Counter()
    for compared in gate.comparisons:
        if compared.before is not None and compared.after is not None:
            old, new = (Counter(a.verdict for a in s.claims) for s in (compared.before, compared.after))
            found += old & new
    return f"unchanged verdicts: {', '.join(f'{n} {v}' for v, n in sorted(found.items()))}" if found else ""


def lasting_in_words(gate: Gate) -> Iterator[str]:
    """`TLA013: cases/atomics.py: tile_fp16 (gfx942)`: kernels with a claim that is refuted with both toolchains, by the
    rule that the new one breaks.
    """
    found: dict[str, list[tuple[LoweredPair, str]]] = {}
    for compared in gate.comparisons:
        if compared.before is None or compared.after is None:
            continue
        old = {claim.key for claim in compared.before.claims if claim.verdict == REFUTED}
        lasting = (c for c in compared.after.claims if c.verdict == REFUTED and c.key in old and c.finding is not None)
        for rule in dict.fromkeys(claim.finding.rule for claim in lasting if claim.finding is not None):
            found.setdefault(rule, []).append((compared, ""))
    return (f"{rule}: {line}" for rule, members in sorted(found.items()) for line in files_in_words(members))
