"""The changes that may mend a kernel: pass configurations, build arguments, other releases."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from tlcheck.lower.runs import Run
from tlcheck.lower.selection import UNCHANGED, Variation
from tlcheck.program.launch import MOST_THREADS
from tlcheck.targets.lookup import warp_of

PASS_CONFIG, ARGUMENT, RELEASE = "pass config", "argument", "release"

# `tilelang.PassConfigKey`s that change the code, and the value that is not the default. What only drops a check or a
# barrier is left out; a kernel that does so has it flipped.
_KEYS: Mapping[str, str] = {
    "TL_DISABLE_WARP_SPECIALIZED": "True",
    "TL_DISABLE_TMA_LOWER": "True",
    "TL_DISABLE_SHARED_MEMORY_REUSE": "True",
    "TIR_DISABLE_VECTORIZE": "True",
    "TL_DISABLE_VECTORIZE_256": "True",
    "TL_ENABLE_ASYNC_COPY": "False",
    "TIR_USE_ASYNC_COPY": "False",
    "TL_DISABLE_LOOP_UNSWITCHING": "True",
    "TIR_DISABLE_STORAGE_REWRITE": "True",
    "TL_STORAGE_REWRITE_DETECT_INPLACE": "True",
    "TIR_MERGE_STATIC_SMEM": "False",
    "TL_ENABLE_LOWER_LDGSTG": "False",
    "TL_DISABLE_WGMMA": "True",
    "TL_FORCE_LET_INLINE": "True",
    "TIR_DISABLE_CSE": "True",
    "TL_REDUCER_FORCE_BASELINE": "True",
    "TL_IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS": "False",
    "TL_DISABLE_SHUFFLE_ELECT": "True",
    "TL_DISABLE_DYNAMIC_TAIL_SPLIT": "True",
    "TL_LAYOUT_COST_MODEL": "'io-aware'",
    "TL_ENABLE_FP32X2_REDUCTION": "False",
    "TL_LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE": "True",
    "TL_CONFIG_INDEX_BITWIDTH": "64",
    "TL_DISABLE_FAST_MATH": "True",
}
# What helps against what these passes get wrong comes first.
_OF_PASS: Mapping[str, tuple[str, ...]] = {
    "MergeSharedMemoryAllocations": ("TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE", "TL_DISABLE_SHARED_MEMORY_REUSE"),
    "VectorizeLoop": ("TIR_DISABLE_VECTORIZE", "TL_DISABLE_VECTORIZE_256"),
    "LoopUnswitching": ("TL_DISABLE_LOOP_UNSWITCHING",),
    "StorageRewrite": ("TIR_DISABLE_STORAGE_REWRITE",),
    "ProducerConsumerWarpSpecialized": ("TL_DISABLE_WARP_SPECIALIZED",),
    "WarpSpecialized": ("TL_DISABLE_WARP_SPECIALIZED",),
}
# The same for accesses that nothing orders: those of a copy are ordered where its threads wait for what they load.
_OF_RULE: Mapping[str, tuple[str, ...]] = {"TLR001": ("TIR_USE_ASYNC_COPY",), "TLR002": ("TIR_USE_ASYNC_COPY",)}
_KEY_OF = {
    "tl.disable_safe_memory_legalize": "TL_DISABLE_SAFE_MEMORY_ACCESS",
    "tir.disable_cse_tir": "TIR_DISABLE_CSE",
}
_FLIPPED = {"True": "False", "1": "False", "False": "True", "0": "True"}
_STAGES, _THREADS, _BLOCK = (re.compile(text) for text in (r"stages?(\b|_)", r"threads?\b", r"\bblock_|block\b"))


@dataclass(frozen=True)
class KernelChange:
    """One change. kind: of the above. release: empty for the kernel's own."""

    kind: str
    variation: Variation = UNCHANGED
    release: str = ""

    @property
    def words(self) -> str:
        """`TL_DISABLE_WGMMA=True`, `num_stages=1`, `TileLang 0.1.11`."""
        if self.release:
            return f"TileLang {self.release}"
        return " and ".join(f"{name}={value}" for name, value in self.variation.args + self.variation.pass_configs)

    def and_also(self, other: KernelChange) -> KernelChange:
        """Both changes at once."""
        one, two = self.variation, other.variation
        return KernelChange(self.kind, Variation(one.args + two.args, one.pass_configs + two.pass_configs))


def key_of(name: str) -> str:
    """The `PassConfigKey` of a configuration's name: `tl.disable_wgmma` is TL_DISABLE_WGMMA."""
    name = name.replace("tirx.", "tir.")
    return _KEY_OF.get(name, name.replace(".", "_").upper())


def keyed(configs: Mapping[str, str] | None) -> dict[str, str]:
    """Pass configurations by their `PassConfigKey`."""
    return {key_of(name): value for name, value in (configs or {}).items()}


def pass_configs(
    own: Mapping[str, str], pass_name: str, rules: Collection[str] = ()
) -> tuple[list[KernelChange], list[KernelChange]]:
    """One pass configuration each: what concerns the guilty pass or a broken rule, or is set by the kernel, flipped;
    then others.
    """
    other_way, set_by_kernel = _flipped(own), {key_of(name) for name in own}
    values = {**other_way, **{key: value for key, value in _KEYS.items() if key not in set_by_kernel}}
    of_pass = [key for name, keys in _OF_PASS.items() if pass_name.endswith(name) for key in keys]
    of_rules = [key for rule, keys in _OF_RULE.items() if rule in rules for key in keys]
    likely = dict.fromkeys(key for key in (*of_pass, *of_rules, *other_way) if key in values)
    changes = {key: KernelChange(PASS_CONFIG, Variation(pass_configs=((key, values[key]),))) for key in values}
    return [changes[key] for key in likely], [change for key, change in changes.items() if key not in likely]


def flipped(own: Mapping[str, str]) -> list[KernelChange]:
    """Each configuration that a kernel sets to true or false, the other way round."""
    return [KernelChange(PASS_CONFIG, Variation(pass_configs=(each,))) for each in _flipped(own).items()]


def _flipped(own: Mapping[str, str]) -> dict[str, str]:
    return {key_of(name): _FLIPPED[value] for name, value in own.items() if value in _FLIPPED}


def pairs(changes: list[KernelChange]) -> list[KernelChange]:
    """Every two of them at once."""
    return [one.and_also(other) for one, other in combinations(changes, 2)]


def arguments(run: Run) -> list[KernelChange]:
    """Other numbers of stages, then of threads, then half and twice a block."""
    values = {name: int(text) for name, text in {**run.numbers, **run.args}.items() if text.isdecimal()}
    warp = warp_of(run.target)
    found = [(name, other) for name, value in values.items() for other in _others(name, value, warp)]
    return [KernelChange(ARGUMENT, Variation(args=((name, str(other)),))) for name, other in found]


def _others(name: str, value: int, warp: int) -> Iterator[int]:
    if _STAGES.search(name):
        yield from range(value - 1, -1, -1)
    elif _THREADS.search(name):
        yield from (threads for threads in (value // 2, value * 2) if threads % warp == 0 and threads <= MOST_THREADS)
    elif _BLOCK.search(name) and value > 1:
        yield from (value // 2, value * 2)
