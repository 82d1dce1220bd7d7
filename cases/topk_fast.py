"""Radix select as in `topk_selector`, near what latency allows on a Hopper GPU, and right on every row.

Floor at 64 rows of 32768 values, 2048 of each, on an H200 (4.28 TB/s copied): 8.4 MB to read, 0.5 MB to write are
0.0021 ms, and a launch. There is no arithmetic to speak of; what counts is how many steps wait for each other.

Measured there: 0.0148 ms, 7 times the floor; a kernel with the same launch that does nothing takes 0.0047, the form of
`topk_selector` 0.0365, torch.topk 0.0879 (0.1114 sorted). Equal values, the worst of what was tried: 0.0344. Medians of
50 launches between CUDA events, L2 flushed before each, eight sets of inputs in turn; of five such rounds the middle
one. TileLang 0.1.15, one H200, 2026-11-21; more: results/performance.md.

Why it is fast:

- Memory is read once: a block of 1024 threads has the whole row in registers, 32 values each, by eight loads of 16
  bytes that are all under way at once. Values are counted while later ones still come.
- Counting needs no previous value: that is one instruction, which merges equal addresses of a warp.
- A digit has 12 bits, so that one pass leaves a few hundred candidates of 32768. Two bits per value in registers say
  what is selected and what still may be; later digits visit only the latter, and read them again from L1.
- A digit is found by sums over the registers of a warp and 32 totals, with two barriers; the seed's form has 19.
- Places in the output are a sum over the threads before, not an atomic for each element.

Right: any number of candidates may share a digit, there is no list of them that could overflow. NaN of either sign is
the largest, as in torch. Of equal values (0.0 and -0.0 are) any may be selected, in every run the same. A row with
fewer candidates than `topk` has all of them, and -1 in the places that are left.

Why it is here: atomics in shared memory under conditions, in unrolled loops, and in loops whose length depends on data.
There is one shared buffer, with explicit barriers: two would be given the same memory, one after the other.
"""

from collections.abc import Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch
from topk_selector import drawn, normal, reference, rows, selected, sprinkled, torch_topk

from tlcheck.case import Case, Variant

THREADS = 1024
DIGITS = (12, 12, 8)  # bits, from the top; with 10 or more in the first, no number has the first digit of key 0
BASES = (0, 1 << 12, 2 << 12)  # of the digits' histograms in shared memory
COUNTED = 3 << 12  # what of it has to be zero at first: a multiple of 4 * threads
FOUND = COUNTED + 32  # after the totals of up to 32 warps: a digit, the values wanted of its bin, the values in it
SHARED = FOUND + 4


def ordered(x):
    """A key for each value: unsigned, larger for larger values, largest for NaN; 0 is that of no value."""
    bits = T.reinterpret(x, dtype="uint32")
    sign = T.cast(0x80000000, "uint32")
    return T.if_then_else((bits ^ sign) <= T.cast(0x7F800000, "uint32"), ~bits, bits | sign)


def lowest(mask):
    """The lowest bit that is set."""
    return mask & (~mask + 1)


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True})
def topk_fast(topk, length):  # noqa: C901
    batch = T.dynamic("batch")
    vector = 4 if length % 4 == 0 else 1
    tiles = -(-length // (THREADS * vector))
    whole = length % (THREADS * vector) == 0
    words = -(-tiles * vector // 32)  # of a mask with a bit for each value of a thread
    held = THREADS * tiles * vector <= 32 * 1024  # longer rows do not fit into registers and are read twice

    @T.macro
    def load(i, values, scores, bx, tx):
        if whole or (i * THREADS + tx) * vector < length:
            for v in T.vectorized(vector):
                values[i * vector + v] = scores[bx, (i * THREADS + tx) * vector + v]

    @T.macro
    def convert(i, keys, values, start, end, tx):
        for v in T.unroll(vector):
            keys[i * vector + v] = ordered(values[i * vector + v])
        if (i * THREADS + tx) * vector < start[0] or (i * THREADS + tx) * vector + vector > end[0]:
            for v in T.unroll(vector):
                if (i * THREADS + tx) * vector + v < start[0] or (i * THREADS + tx) * vector + v >= end[0]:
                    keys[i * vector + v] = T.cast(0, "uint32")

    @T.macro
    def sum_before(own, before, moved, shared, tx):
        """before: the sum of own over all threads before this one. One barrier."""
        before[0] = own[0]
        for j in T.unroll(5):
            moved[0] = T.shfl_up(before[0], 1 << j)
            if tx % 32 >= (1 << j):
                before[0] = before[0] + moved[0]
        if tx % 32 == 31:
            shared[COUNTED + tx // 32] = before[0]
        T.sync_threads()
        moved[0] = T.if_then_else(tx % 32 < tx // 32, shared[COUNTED + tx % 32], 0)
        for j in T.unroll(5):
            moved[0] = moved[0] + T.shfl_xor(moved[0], 1 << j)
        before[0] = before[0] - own[0] + moved[0]

    @T.macro
    def find(base, bits, counts, own, before, moved, shared, found, tx):
        """found: the digit whose bin has the last value wanted, how many are wanted of the bin, how many are in it."""
        per = max(1, (1 << bits) // THREADS)  # bins of a thread
        for j in T.unroll(per):
            counts[j] = 0
        if tx < (1 << bits) // per:
            for j in T.vectorized(per):
                counts[j] = shared[base + (1 << bits) - (tx + 1) * per + j]
        own[0] = 0
        for j in T.unroll(per):
            own[0] = own[0] + counts[j]
        sum_before(own, before, moved, shared, tx)
        # Not under a condition on all bins of a thread: 0.1.7 takes it for true in each, though before changes.
        for j in T.unroll(per):
            if before[0] < found[1] and found[1] <= before[0] + counts[per - 1 - j]:
                shared[FOUND] = (1 << bits) - 1 - tx * per - j
                shared[FOUND + 1] = found[1] - before[0]
                shared[FOUND + 2] = counts[per - 1 - j]
            before[0] = before[0] + counts[per - 1 - j]
        T.sync_threads()
        for j in T.unroll(3):
            found[j] = shared[FOUND + j]

    @T.macro
    def locate(place, w, left, tx):
        place[0] = w * 32 + T.cast(T.popcount(lowest(left[0]) - 1), "int32")
        place[0] = (place[0] // vector * THREADS + tx) * vector + place[0] % vector

    @T.macro
    def sift(base, shift, sure, maybe, low, high, left, number, place, key, scores, shared, bx, tx):
        """Of what may be selected, keep what lies in [low, high], and count its next digit where there is one."""
        for w in T.unroll(words):
            left[0] = maybe[w]
            number[0] = T.popcount(left[0])
            for _ in T.serial(T.cast(T.min(number[0], T.cast(32, "uint32")), "int32")):
                locate(place, w, left, tx)
                key[0] = ordered(scores[bx, place[0]])
                if key[0] > high[0]:
                    sure[w] = sure[w] | lowest(left[0])
                if key[0] < low[0] or key[0] > high[0]:
                    maybe[w] = maybe[w] ^ lowest(left[0])
                elif base > 0:
                    T.atomic_add(shared[base + T.cast((key[0] - low[0]) >> shift, "int32")], 1)
                left[0] = left[0] & (left[0] - 1)

    @T.macro
    def write(mask, own, before, moved, left, number, place, index, shared, first, bx, tx):
        """The places of a mask go to index[first:], up to its end."""
        own[0] = 0
        for w in T.unroll(words):
            own[0] = own[0] + T.cast(T.popcount(mask[w]), "int32")
        sum_before(own, before, moved, shared, tx)
        before[0] = before[0] + first
        for w in T.unroll(words):
            left[0] = mask[w]
            number[0] = T.popcount(left[0])
            for _ in T.serial(T.cast(T.min(number[0], T.cast(32, "uint32")), "int32")):
                locate(place, w, left, tx)
                if before[0] < topk:
                    index[bx, before[0]] = place[0]
                before[0] = before[0] + 1
                left[0] = left[0] & (left[0] - 1)

    @T.prim_func
    def main(  # noqa: C901
        scores: T.Tensor((batch, length), "float32"),
        index: T.Tensor((batch, topk), "int32"),
        starts: T.Tensor((batch,), "int32"),
        ends: T.Tensor((batch,), "int32"),
    ):
        with T.Kernel(batch, threads=THREADS) as bx:
            tx = T.get_thread_binding()
            shared = T.alloc_shared([SHARED], "int32")
            values = T.alloc_local([tiles * vector], "float32")
            keys = T.alloc_local([tiles * vector], "uint32")
            counts = T.alloc_local([(1 << max(DIGITS)) // THREADS], "int32")
            own = T.alloc_local([1], "int32")
            before = T.alloc_local([1], "int32")
            moved = T.alloc_local([1], "int32")
            found = T.alloc_local([3], "int32")
            start = T.alloc_local([1], "int32")
            end = T.alloc_local([1], "int32")
            count = T.alloc_local([1], "int32")
            low = T.alloc_local([1], "uint32")  # keys from low to high may be selected, those above are
            high = T.alloc_local([1], "uint32")
            sure = T.alloc_local([words], "uint32")
            maybe = T.alloc_local([words], "uint32")
            left = T.alloc_local([1], "uint32")
            number = T.alloc_local([1], "uint32")
            place = T.alloc_local([1], "int32")
            key = T.alloc_local([1], "uint32")
            # Conditions and lengths have variables of their own: each statement of the body may evaluate them again.
            again = T.alloc_local([3], "int32")  # not all with this digit are wanted

            start[0] = T.max(starts[bx], 0)
            end[0] = T.min(ends[bx], length)
            if held:
                for i in T.unroll(tiles):
                    load(i, values, scores, bx, tx)
            for i in T.unroll(COUNTED // (4 * THREADS)):
                for v in T.vectorized(4):
                    shared[(i * THREADS + tx) * 4 + v] = 0
            T.sync_threads()

            # The first digit of every value, those outside of the row's range as key 0.
            for i in T.unroll(tiles):
                if not held:
                    load(i, values, scores, bx, tx)
                convert(i, keys, values, start, end, tx)
                for v in T.unroll(vector):
                    T.atomic_add(shared[T.cast(keys[i * vector + v] >> (32 - DIGITS[0]), "int32")], 1)
            T.sync_threads()

            count[0] = T.max(end[0] - start[0], 0)
            low[0] = T.cast(1, "uint32")
            high[0] = T.cast(0, "uint32")
            found[1] = topk
            for j in T.unroll(3):
                again[j] = 0
            if count[0] > topk:
                find(BASES[0], DIGITS[0], counts, own, before, moved, shared, found, tx)
                low[0] = T.cast(found[0], "uint32") << (32 - DIGITS[0])
                high[0] = low[0] | T.cast((1 << (32 - DIGITS[0])) - 1, "uint32")
                again[0] = T.if_then_else(found[1] < found[2], 1, 0)

            for w in T.unroll(words):
                sure[w] = T.cast(0, "uint32")
                maybe[w] = T.cast(0, "uint32")
            for i in T.unroll(tiles):
                if not held:
                    load(i, values, scores, bx, tx)
                    convert(i, keys, values, start, end, tx)
                for v in T.unroll(vector):
                    bit = T.cast(1, "uint32") << T.cast((i * vector + v) % 32, "uint32")
                    if keys[i * vector + v] >= low[0]:
                        maybe[(i * vector + v) // 32] = maybe[(i * vector + v) // 32] | bit
                    if keys[i * vector + v] > high[0]:
                        sure[(i * vector + v) // 32] = sure[(i * vector + v) // 32] | bit
            for w in T.unroll(words):
                maybe[w] = maybe[w] & ~sure[w]

            # The second and the third digit of what may be selected.
            if again[0] > 0:
                sift(BASES[1], DIGITS[2], sure, maybe, low, high, left, number, place, key, scores, shared, bx, tx)
                T.sync_threads()
                find(BASES[1], DIGITS[1], counts, own, before, moved, shared, found, tx)
                low[0] = low[0] | (T.cast(found[0], "uint32") << DIGITS[2])
                high[0] = low[0] | T.cast((1 << DIGITS[2]) - 1, "uint32")
                again[1] = T.if_then_else(found[1] < found[2], 1, 0)
                sift(BASES[2], 0, sure, maybe, low, high, left, number, place, key, scores, shared, bx, tx)
            if again[1] > 0:
                T.sync_threads()
                find(BASES[2], DIGITS[2], counts, own, before, moved, shared, found, tx)
                low[0] = low[0] | T.cast(found[0], "uint32")
                high[0] = low[0]
                again[2] = T.if_then_else(found[1] < found[2], 1, 0)
                sift(0, 0, sure, maybe, low, high, left, number, place, key, scores, shared, bx, tx)

            # All that may be selected are, but of equal values only as many as are wanted.
            if again[2] == 0:
                for w in T.unroll(words):
                    sure[w] = sure[w] | maybe[w]
            write(sure, own, before, moved, left, number, place, index, shared, 0, bx, tx)
            if again[2] > 0:
                T.sync_threads()
                write(maybe, own, before, moved, left, number, place, index, shared, topk - found[1], bx, tx)
            for i in T.serial(T.ceildiv(topk, THREADS)):
                if i * THREADS + tx < topk and i * THREADS + tx >= count[0]:
                    index[bx, i * THREADS + tx] = -1

    return main


def few(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> Any:
    """Rows with fewer candidates than ``topk``, as many, and a few more; some ranges reach over the row's ends."""
    topk, length = args["topk"], args["length"]
    counts = torch.tensor([0, 1, 31, topk - 1, topk, topk + 1, topk + 37, length], dtype=torch.int32)
    starts = torch.tensor([-3, length, 5, 7, 0, 1, length // 2, 0], dtype=torch.int32)
    return rows(normal((len(counts), length), generator).to(device), args, starts, starts + counts)


def several(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> Any:
    """As `drawn`, of the case's own length."""
    return drawn(lambda values, _: values, batch=5, seq_len=args["length"])(args, generator, device)


def quantized(values: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return (values * 16).round() / 16


def in_one_bin(values: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """All share the first digit, and a third is equal: far more candidates than `topk_selector` has room for."""
    return 1 + values.abs().clamp(max=1) / 1024


top_2048 = Case(
    topk_fast,
    args={"topk": 2048, "length": 32 * 1024},
    inputs=drawn(lambda values, _: values),
    variants={
        "ties": Variant(drawn(quantized)),
        "negative": Variant(drawn(lambda values, _: -values.abs())),
        "infinite": Variant(drawn(sprinkled(torch.inf, -torch.inf, 1e30, -1e30))),
        "nan": Variant(drawn(sprinkled(torch.nan, torch.inf))),
        "in one bin": Variant(drawn(in_one_bin)),
        "equal": Variant(drawn(lambda values, _: torch.ones_like(values))),
        "few": Variant(few),
    },
    reference=reference,
    outcome=selected,
    tolerance=0.0,
    baselines={"torch.topk": torch_topk},
)

odd_length = Case(
    topk_fast,
    args={"topk": 300, "length": 9999},
    inputs=several,
    variants={"few": Variant(few)},
    reference=reference,
    outcome=selected,
    tolerance=0.0,
)

long_rows = Case(
    topk_fast,
    args={"topk": 2048, "length": 64 * 1024},
    inputs=several,
    variants={"few": Variant(few)},
    reference=reference,
    outcome=selected,
    tolerance=0.0,
)
