"""Radix select as in `topk_selector`, near what latency allows on a Hopper GPU, and right on every row.

Floor at 64 rows of 32768 values, 2048 of each, on an H100 (3.02 TB/s copied): 8.4 MB to read, 0.5 MB to write are
0.0030 ms, and a launch. There is no arithmetic to speak of; what counts is how many steps wait for each other, and how
many integer instructions 1024 threads of one multiprocessor issue.

Measured there: 0.0139 ms, 5 times the floor; the form of `topk_selector` takes 0.0365 on an H200, torch.topk 0.0955
(0.1157 sorted). Medians of ten rounds of `tlcheck run --bench`, L2 flushed before each launch, eight sets of inputs in
turn. TileLang 0.1.15, one H100, 2026-11-27; more: results/performance.md.

Why it is fast:

- Memory is read once: a block of 1024 threads copies the row to shared memory, three tiles at a time, and has its
  values in registers, 32 each. A tile is counted while the next ones come. To load all at once by threads keeps warps
  waiting for one another.
- Counting needs no previous value: that is one instruction, which merges equal addresses of a warp.
- The first digit has 12 bits, so that one pass leaves a few hundred candidates of 32768. Two bits per value in
  registers say what is selected and what still may be; what follows visits only the latter, in shared memory.
- The second digit, of 8 bits, is found by one warp. It leaves two or three candidates, which are put on a list, and
  each counts those before it. A third digit is counted only where more than 32 are left.
- A digit of 12 bits is found by sums over the registers of a warp and 32 totals, with two barriers; the seed's form
  has 19.
- Places in the output are a sum over the threads before, not an atomic for each element.

Right: any number of candidates may share a digit; a list that would overflow is not made. NaN of either sign is
the largest, as in torch. Of equal values (0.0 and -0.0 are) any may be selected, in every run the same. A row with
fewer candidates than `topk` has all of them, and -1 in the places that are left.

Why it is here: atomics in shared memory under conditions, in unrolled loops, and in loops whose length depends on data;
a list in the order of tickets, on which nothing depends. The row is in a buffer of its own, for as long as the other.
"""

from collections.abc import Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch
from topk_selector import drawn, normal, reference, rows, selected, sprinkled, torch_topk

from tlcheck.case import Case, Variant

THREADS = 1024
DIGITS = (12, 8, 12)  # bits, from the top; with 10 or more in the first, no number has the first digit of key 0
BINS = 1 << 12  # of a large digit's histogram, at the start of shared memory
SMALL = BINS  # where that of the second digit begins
TICKETS = SMALL + (1 << DIGITS[1])  # how many places of the list are taken
ZEROED = TICKETS + 1
TOTALS = ZEROED + 31  # of up to 32 warps
FOUND = TOTALS + 32  # a digit, the values wanted of its bin, the values in it
LISTED = 32  # up to so many candidates are compared with one another
KEYS = FOUND + 4
PLACES = KEYS + LISTED
SHARED = PLACES + LISTED
UNDERWAY = 3  # tiles of a row that are copied at once


def ordered(x):
    """A key for each value: unsigned, larger for larger values, largest for NaN; 0 is that of no value."""
    bits = T.reinterpret(x, dtype="int32")
    key = T.reinterpret(bits ^ ((bits >> 31) | T.cast(-0x80000000, "int32")), dtype="uint32")
    return T.if_then_else(x == x, key, T.cast(0xFFFFFFFF, "uint32"))


def lowest(mask):
    """The lowest bit that is set."""
    return mask & (~mask + 1)


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True})
def topk_fast(topk, length):  # noqa: C901
    batch = T.dynamic("batch")
    vector = 4 if length % 4 == 0 else 1
    tile = THREADS * vector
    tiles = -(-length // tile)
    whole = length % tile == 0
    words = -(-tiles * vector // 32)  # of a mask with a bit for each value of a thread
    held = tile * tiles <= 32 * 1024  # longer rows do not fit into registers and are read twice
    copied = (
        held and whole and tiles > UNDERWAY and hasattr(T, "async_copy")
    )  # into shared memory, in releases that can: since 0.1.9

    @T.macro
    def load(i, values, scores, bx, tx):
        if whole or (i * THREADS + tx) * vector < length:
            for v in T.vectorized(vector):
                values[i * vector + v] = scores[bx, (i * THREADS + tx) * vector + v]

    @T.macro
    def copy(i, row, scores, bx):
        T.async_copy(scores[bx, i * tile : (i + 1) * tile], row[i * tile : (i + 1) * tile])

    @T.macro
    def take(i, later, values, row, tx):
        """A thread's part of a tile, which this thread has copied itself, before so many later ones."""
        T.ptx_wait_group(later)
        for v in T.vectorized(vector):
            values[i * vector + v] = row[(i * THREADS + tx) * vector + v]

    @T.macro
    def convert(i, keys, values, start, end, cut, tx):
        for v in T.unroll(vector):
            keys[i * vector + v] = ordered(values[i * vector + v])
        if cut[0] > 0:
            for v in T.unroll(vector):
                if (i * THREADS + tx) * vector + v < start[0] or (i * THREADS + tx) * vector + v >= end[0]:
                    keys[i * vector + v] = T.cast(0, "uint32")

    @T.macro
    def count_large(i, keys, values, start, end, cut, shared, tx):
        """The first digit of a thread's part of a tile; values outside of the row's range have key 0."""
        convert(i, keys, values, start, end, cut, tx)
        for v in T.unroll(vector):
            T.atomic_add(shared[T.cast(keys[i * vector + v] >> (32 - DIGITS[0]), "int32")], 1)

    @T.macro
    def clear(shared, tx):
        for v in T.vectorized(BINS // THREADS):
            shared[tx * (BINS // THREADS) + v] = 0

    @T.macro
    def sum_before(own, before, moved, shared, tx):
        """before: the sum of own over all threads before this one. One barrier."""
        before[0] = own[0]
        for j in T.unroll(5):
            moved[0] = T.shfl_up(before[0], 1 << j)
            if tx % 32 >= (1 << j):
                before[0] = before[0] + moved[0]
        if tx % 32 == 31:
            shared[TOTALS + tx // 32] = before[0]
        T.sync_threads()
        moved[0] = T.if_then_else(tx % 32 < tx // 32, shared[TOTALS + tx % 32], 0)
        for j in T.unroll(5):
            moved[0] = moved[0] + T.shfl_xor(moved[0], 1 << j)
        before[0] = before[0] - own[0] + moved[0]

    @T.macro
    def tell(bits, per, counts, own, before, hit, shared, found, tx):
        """found: the digit whose bin has the last value wanted, how many are wanted of the bin, how many are in it.

        counts: the bins of a thread, own: their sum, before: the sum of all bins above them.
        """
        # Not before[0] itself as condition: 0.1.7 evaluates it again for each statement, and it changes.
        hit[0] = T.if_then_else(before[0] < found[1] and found[1] <= before[0] + own[0], 1, 0)
        if hit[0] > 0:
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
    def find(counts, own, before, moved, hit, shared, found, tx):
        """The large digit of the last value wanted, by all threads. Two barriers."""
        per = BINS // THREADS  # bins of a thread
        for j in T.vectorized(per):
            counts[j] = shared[BINS - (tx + 1) * per + j]
        own[0] = 0
        for j in T.unroll(per):
            own[0] = own[0] + counts[j]
        sum_before(own, before, moved, shared, tx)
        tell(12, per, counts, own, before, hit, shared, found, tx)

    @T.macro
    def find_small(counts, own, before, moved, hit, shared, found, tx):
        """The second digit, by the first warp. One barrier."""
        per = (1 << DIGITS[1]) // 32
        own[0] = 0
        before[0] = 0
        if tx < 32:
            for half in T.unroll(per // 4):
                for j in T.vectorized(4):
                    counts[half * 4 + j] = shared[TICKETS - (tx + 1) * per + half * 4 + j]
            for j in T.unroll(per):
                own[0] = own[0] + counts[j]
            before[0] = own[0]
            for j in T.unroll(5):
                moved[0] = T.shfl_up(before[0], 1 << j)
                if tx >= (1 << j):
                    before[0] = before[0] + moved[0]
            before[0] = before[0] - own[0]
        tell(DIGITS[1], per, counts, own, before, hit, shared, found, tx)

    @T.macro
    def locate(place, w, left, tx):
        place[0] = w * 32 + T.cast(T.popcount(lowest(left[0]) - 1), "int32")
        place[0] = (place[0] // vector * THREADS + tx) * vector + place[0] % vector

    @T.macro
    def read(key, value, place, row, scores, bx):
        """The key of a place, which is in shared memory or in L1."""
        if copied:
            value[0] = row[place[0]]
        else:
            value[0] = scores[bx, place[0]]
        key[0] = ordered(value[0])

    @T.macro
    def count_small(maybe, low, left, number, place, key, value, row, scores, shared, bx, tx):
        """Count the second digit of what may be selected."""
        for w in T.unroll(words):
            left[0] = maybe[w]
            number[0] = T.popcount(left[0])
            for _ in T.serial(T.cast(T.min(number[0], T.cast(32, "uint32")), "int32")):
                locate(place, w, left, tx)
                read(key, value, place, row, scores, bx)
                T.atomic_add(shared[SMALL + T.cast((key[0] - low[0]) >> DIGITS[2], "int32")], 1)
                left[0] = left[0] & (left[0] - 1)

    @T.macro
    def sift(
        deeper,
        sure,
        maybe,
        low,
        high,
        counted,
        listed,
        left,
        number,
        place,
        key,
        value,
        ticket,
        row,
        scores,
        shared,
        bx,
        tx,
    ):
        """Of what may be selected, keep what lies in [low, high]; count its last digit, or put it on the list."""
        for w in T.unroll(words):
            left[0] = maybe[w]
            number[0] = T.popcount(left[0])
            for _ in T.serial(T.cast(T.min(number[0], T.cast(32, "uint32")), "int32")):
                locate(place, w, left, tx)
                read(key, value, place, row, scores, bx)
                if key[0] > high[0]:
                    sure[w] = sure[w] | lowest(left[0])
                    maybe[w] = maybe[w] ^ lowest(left[0])
                elif key[0] < low[0]:
                    maybe[w] = maybe[w] ^ lowest(left[0])
                elif deeper and counted[0] > 0:
                    T.atomic_add(shared[T.cast(key[0] - low[0], "int32")], 1)
                elif deeper and listed[0] > 0:
                    ticket[0] = T.atomic_add(shared[TICKETS], 1, return_prev=True)
                    shared[KEYS + ticket[0]] = T.reinterpret(key[0], dtype="int32")
                    shared[PLACES + ticket[0]] = place[0]
                left[0] = left[0] & (left[0] - 1)

    @T.macro
    def rank(sure, maybe, left, number, place, key, value, larger, row, scores, shared, found, bx, tx):
        """Select what is on the list and has fewer than those wanted before it, in whatever order the list is."""
        for w in T.unroll(words):
            left[0] = maybe[w]
            number[0] = T.popcount(left[0])
            for _ in T.serial(T.cast(T.min(number[0], T.cast(32, "uint32")), "int32")):
                locate(place, w, left, tx)
                read(key, value, place, row, scores, bx)
                larger[0] = 0
                for e in T.serial(T.min(found[2], LISTED)):
                    if T.reinterpret(shared[KEYS + e], dtype="uint32") > key[0] or (
                        T.reinterpret(shared[KEYS + e], dtype="uint32") == key[0] and shared[PLACES + e] < place[0]
                    ):
                        larger[0] = larger[0] + 1
                if larger[0] < found[1]:
                    sure[w] = sure[w] | lowest(left[0])
                left[0] = left[0] & (left[0] - 1)
            maybe[w] = T.cast(0, "uint32")

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
            row = T.alloc_shared([tiles * tile if copied else 1], "float32")
            values = T.alloc_local([tiles * vector], "float32")
            keys = T.alloc_local([tiles * vector], "uint32")
            counts = T.alloc_local([8], "int32")  # as many as there are bins of a thread
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
            value = T.alloc_local([1], "float32")
            key = T.alloc_local([1], "uint32")
            ticket = T.alloc_local([1], "int32")
            # Conditions and lengths have variables of their own: each statement of the body may evaluate them again.
            cut = T.alloc_local([1], "int32")  # some values are outside of the row's range
            hit = T.alloc_local([1], "int32")
            again = T.alloc_local([1], "int32")  # not all with the first digit are wanted
            counted = T.alloc_local([1], "int32")  # the last digit of more than can be listed is needed
            listed = T.alloc_local([1], "int32")
            equal = T.alloc_local([1], "int32")  # only some of equal values are wanted

            if copied:
                for i in T.unroll(UNDERWAY):
                    copy(i, row, scores, bx)
            clear(shared, tx)
            if tx < ZEROED - BINS:
                shared[BINS + tx] = 0
            T.sync_threads()
            if held and not copied:
                for i in T.unroll(tiles):
                    load(i, values, scores, bx, tx)
            start[0] = T.max(starts[bx], 0)
            end[0] = T.min(ends[bx], length)
            cut[0] = T.if_then_else(start[0] > 0 or end[0] < tiles * tile, 1, 0)

            if copied:
                for i in T.unroll(tiles - UNDERWAY):
                    take(i, UNDERWAY - 1, values, row, tx)
                    copy(i + UNDERWAY, row, scores, bx)
                    count_large(i, keys, values, start, end, cut, shared, tx)
                take(tiles - 3, 2, values, row, tx)
                count_large(tiles - 3, keys, values, start, end, cut, shared, tx)
                take(tiles - 2, 1, values, row, tx)
                count_large(tiles - 2, keys, values, start, end, cut, shared, tx)
                take(tiles - 1, 0, values, row, tx)
                count_large(tiles - 1, keys, values, start, end, cut, shared, tx)
            else:
                for i in T.unroll(tiles):
                    if not held:
                        load(i, values, scores, bx, tx)
                    count_large(i, keys, values, start, end, cut, shared, tx)
            T.sync_threads()

            count[0] = T.max(end[0] - start[0], 0)
            low[0] = T.cast(1, "uint32")
            high[0] = T.cast(0, "uint32")
            found[1] = topk
            again[0] = 0
            counted[0] = 0
            listed[0] = 0
            equal[0] = 0
            if count[0] > topk:
                find(counts, own, before, moved, hit, shared, found, tx)
                low[0] = T.cast(found[0], "uint32") << (32 - DIGITS[0])
                high[0] = low[0] | T.cast((1 << (32 - DIGITS[0])) - 1, "uint32")
                again[0] = T.if_then_else(found[1] < found[2], 1, 0)

            for w in T.unroll(words):
                sure[w] = T.cast(0, "uint32")
                maybe[w] = T.cast(0, "uint32")
            for i in T.unroll(tiles):
                if not held:
                    load(i, values, scores, bx, tx)
                    convert(i, keys, values, start, end, cut, tx)
                for v in T.unroll(vector):
                    bit = T.cast(1, "uint32") << T.cast((i * vector + v) % 32, "uint32")
                    if keys[i * vector + v] >= low[0]:
                        maybe[(i * vector + v) // 32] = maybe[(i * vector + v) // 32] | bit
                    if keys[i * vector + v] > high[0]:
                        sure[(i * vector + v) // 32] = sure[(i * vector + v) // 32] | bit
            for w in T.unroll(words):
                maybe[w] = maybe[w] & ~sure[w]

            # The second digit of what may be selected. Few are left with it, as a rule.
            if again[0] > 0:
                count_small(maybe, low, left, number, place, key, value, row, scores, shared, bx, tx)
                T.sync_threads()
                find_small(counts, own, before, moved, hit, shared, found, tx)
                low[0] = low[0] | (T.cast(found[0], "uint32") << DIGITS[2])
                high[0] = low[0] | T.cast((1 << DIGITS[2]) - 1, "uint32")
                listed[0] = T.if_then_else(found[1] < found[2] and found[2] <= LISTED, 1, 0)
                counted[0] = T.if_then_else(found[1] < found[2] and found[2] > LISTED, 1, 0)
            if counted[0] > 0:
                clear(shared, tx)
                T.sync_threads()
            if again[0] > 0:
                sift(
                    True,
                    sure,
                    maybe,
                    low,
                    high,
                    counted,
                    listed,
                    left,
                    number,
                    place,
                    key,
                    value,
                    ticket,
                    row,
                    scores,
                    shared,
                    bx,
                    tx,
                )
            if listed[0] > 0:
                T.sync_threads()
                rank(sure, maybe, left, number, place, key, value, ticket, row, scores, shared, found, bx, tx)
            if counted[0] > 0:
                T.sync_threads()
                find(counts, own, before, moved, hit, shared, found, tx)
                low[0] = low[0] | T.cast(found[0], "uint32")
                high[0] = low[0]
                equal[0] = T.if_then_else(found[1] < found[2], 1, 0)
                sift(
                    False,
                    sure,
                    maybe,
                    low,
                    high,
                    counted,
                    listed,
                    left,
                    number,
                    place,
                    key,
                    value,
                    ticket,
                    row,
                    scores,
                    shared,
                    bx,
                    tx,
                )

            # All that may be selected are, but of equal values only as many as are wanted.
            if equal[0] == 0:
                for w in T.unroll(words):
                    sure[w] = sure[w] | maybe[w]
            write(sure, own, before, moved, left, number, place, index, shared, 0, bx, tx)
            if equal[0] > 0:
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
