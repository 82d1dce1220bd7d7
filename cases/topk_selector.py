"""Radix select: the indices of the ``topk`` largest values of each row, in no order.

One block per row. A first pass puts every value into one of 256 bins by the upper 8 bits of its float16 form; a suffix
sum of the histogram tells the bin that holds the k-th largest value. Values in higher bins are selected at once, those
in that bin are refined by up to four passes over 8 bits of the float32 form each.

Why it is here: atomics on single elements of shared memory, at indices that depend on data, whose previous value places
an element in the output; a loop with a break; symbolic sizes. A lowering that repeats, merges or moves one of these
atomics changes what is selected. It is spelled so that every release since 0.1.6.post2 lowers it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case, Variant


def ordered_bits_16(x):
    """The upper 8 bits of the float16 form of ``x``, so mapped that a larger value has larger bits."""
    # `dtype=` by name: the order of reinterpret's arguments was reversed in 0.1.8.
    bits = T.reinterpret(T.cast(x, "float16"), dtype="uint16")
    bits = T.if_then_else(x < 0, ~bits & 0xFFFF, bits | 0x8000)
    return bits >> 8


def ordered_bits_32(x):
    """All bits of ``x``, so mapped that a larger value has larger bits."""
    bits = T.reinterpret(x, dtype="uint32")
    return T.if_then_else(x < 0, ~bits & T.cast(0xFFFFFFFF, "uint32"), bits | T.cast(0x80000000, "uint32"))


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True})
def topk_selector(topk, in_dtype="float32", out_dtype="int32"):  # noqa: C901
    batch = T.dynamic("batch")
    seq_len = T.dynamic("seq_len")
    RADIX = 1 << 8
    BLOCK_SIZE = 1024
    SMEM_INPUT_SIZE = 4096  # more values than this in the bin of the k-th largest do not fit

    @T.prim_func
    def tl_topk_kernel(  # noqa: C901
        scores: T.Tensor((batch, seq_len), in_dtype),
        index: T.Tensor((batch, topk), out_dtype),
        starts: T.Tensor((batch,), out_dtype),
        ends: T.Tensor((batch,), out_dtype),
    ):
        with T.Kernel(batch, threads=BLOCK_SIZE) as bx:
            tx = T.get_thread_binding()

            s_threshold_bin_id = T.alloc_shared([1], "int32")
            s_histogram = T.alloc_shared([RADIX + 1], "int32")
            s_num_input = T.alloc_shared([2], "int32")
            s_input_idx = T.alloc_shared([2, SMEM_INPUT_SIZE], "int32")

            l_threshold_bin_id = T.alloc_var("int32")
            l_new_topk = T.alloc_var("int32")
            l_num_input = T.alloc_var("int32")
            l_bin_id32 = T.alloc_var("int32")
            l_val = T.alloc_var("int32")
            l_start_pos = T.alloc_var("int32")
            l_start_idx = T.alloc_var("int32")
            l_end_idx = T.alloc_var("int32")
            l_out_pos = T.alloc_var("int32")

            l_new_topk = topk
            l_start_idx = starts[bx]
            l_end_idx = ends[bx]

            T.fill(s_threshold_bin_id, -1)  # stays where a row has no more than topk values: all are selected
            T.fill(s_histogram, 0)  # first pass: by 8 bits of the float16 form
            T.fill(s_num_input[0], 0)
            T.sync_threads()
            for s in T.serial(T.ceildiv(seq_len, BLOCK_SIZE)):
                input_idx = s * BLOCK_SIZE + tx
                if input_idx < l_end_idx and input_idx >= l_start_idx and input_idx < seq_len:
                    inval_int16 = ordered_bits_16(scores[bx, input_idx])
                    T.atomic_add(s_histogram[inval_int16], 1)
            T.sync_threads()

            # Suffix sums: s_histogram[b] becomes the number of values in bins b and above.
            if tx < RADIX:
                for i in T.serial(8):
                    offset = 1 << i
                    T.sync_threads(3, RADIX)
                    if tx < RADIX - offset:
                        l_val = s_histogram[tx] + s_histogram[tx + offset]
                    T.sync_threads(3, RADIX)
                    if tx < RADIX - offset:
                        s_histogram[tx] = l_val

                # The bin of the k-th largest value.
                T.sync_threads(3, RADIX)
                if s_histogram[tx] > l_new_topk and s_histogram[tx + 1] <= l_new_topk:
                    s_threshold_bin_id[0] = tx
            T.sync_threads()
            l_threshold_bin_id = s_threshold_bin_id[0]
            l_new_topk = l_new_topk - s_histogram[l_threshold_bin_id + 1]
            T.sync_threads()

            # Select what lies above that bin, keep aside what lies in it.
            for s in T.serial(T.ceildiv(seq_len, BLOCK_SIZE)):
                T.sync_threads()
                input_idx = s * BLOCK_SIZE + tx
                if input_idx < l_end_idx and input_idx >= l_start_idx and input_idx < seq_len:
                    bin_id = ordered_bits_16(scores[bx, input_idx])
                    l_bin_id32 = T.cast(bin_id, "int32")
                    if l_bin_id32 > l_threshold_bin_id:
                        # s_histogram[bin + 1] is the first place of this bin's values in the output.
                        pos = T.atomic_add(s_histogram[l_bin_id32 + 1], 1, return_prev=True)
                        index[bx, pos] = input_idx
                    elif l_bin_id32 == l_threshold_bin_id and l_new_topk > 0:
                        pos = T.atomic_add(s_num_input[0], 1, return_prev=True)
                        s_input_idx[0, pos] = input_idx

            # Up to four more passes over what was kept aside, 8 bits of the float32 form each.
            for step in T.serial(4):
                if l_new_topk <= 0:
                    T.loop_break()

                r_idx = step % 2
                l_start_pos = topk - l_new_topk

                T.sync_threads()
                T.fill(s_histogram, 0)
                if tx == 0:
                    s_num_input[r_idx ^ 1] = 0
                T.sync_threads()

                l_num_input = s_num_input[r_idx]
                for s in T.serial(T.ceildiv(l_num_input, BLOCK_SIZE)):
                    if s * BLOCK_SIZE + tx < l_num_input:
                        l_bin_id32 = T.cast(
                            (ordered_bits_32(scores[bx, s_input_idx[r_idx, s * BLOCK_SIZE + tx]]) >> (24 - step * 8))
                            & 0xFF,
                            "int32",
                        )
                        T.atomic_add(s_histogram[l_bin_id32], 1)
                T.sync_threads()

                if tx < RADIX:
                    for i in T.serial(8):
                        offset = 1 << i
                        T.sync_threads(3, RADIX)
                        if tx < RADIX - offset:
                            l_val = s_histogram[tx] + s_histogram[tx + offset]
                        T.sync_threads(3, RADIX)
                        if tx < RADIX - offset:
                            s_histogram[tx] = l_val

                    T.sync_threads(3, RADIX)
                    if s_histogram[tx] > l_new_topk and s_histogram[tx + 1] <= l_new_topk:
                        s_threshold_bin_id[0] = tx
                T.sync_threads()
                l_threshold_bin_id = s_threshold_bin_id[0]
                l_new_topk = l_new_topk - s_histogram[l_threshold_bin_id + 1]
                T.sync_threads()

                for s in T.serial(T.ceildiv(l_num_input, BLOCK_SIZE)):
                    T.sync_threads()
                    if s * BLOCK_SIZE + tx < l_num_input:
                        l_bin_id32 = T.cast(
                            (ordered_bits_32(scores[bx, s_input_idx[r_idx, s * BLOCK_SIZE + tx]]) >> (24 - step * 8))
                            & 0xFF,
                            "int32",
                        )
                        if l_bin_id32 > l_threshold_bin_id:
                            pos = T.atomic_add(s_histogram[l_bin_id32 + 1], 1, return_prev=True) + l_start_pos
                            index[bx, pos] = s_input_idx[r_idx, s * BLOCK_SIZE + tx]
                        elif l_bin_id32 == l_threshold_bin_id and l_new_topk > 0:
                            if step == 3:
                                # Equal values: as many as still fit.
                                l_out_pos = T.atomic_add(s_histogram[l_bin_id32 + 1], 1, return_prev=True) + l_start_pos
                                if l_out_pos < topk:
                                    index[bx, l_out_pos] = s_input_idx[r_idx, s * BLOCK_SIZE + tx]
                            else:
                                pos = T.atomic_add(s_num_input[r_idx ^ 1], 1, return_prev=True)
                                s_input_idx[r_idx ^ 1, pos] = s_input_idx[r_idx, s * BLOCK_SIZE + tx]

    return tl_topk_kernel


def normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def rows(values: torch.Tensor, args: Mapping[str, Any], starts: torch.Tensor, ends: torch.Tensor) -> Any:
    """The kernel's parameters: each row selects in [start, end); places of the output without an index hold -1."""
    index = torch.full((len(values), args["topk"]), -1, dtype=torch.int32, device=values.device)
    return values, index, starts.to(values.device), ends.to(values.device)


def drawn(
    change: Callable[[torch.Tensor, torch.Generator], torch.Tensor], batch: int = 64, seq_len: int = 32 * 1024
) -> Callable[..., Any]:
    """The ``inputs`` of normal values, changed; each row selects among all of them but a few at either end."""

    def inputs(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> Any:
        values = change(normal((batch, seq_len), generator), generator).to(device)
        starts = torch.arange(batch, dtype=torch.int32)
        return rows(values, args, starts, seq_len - 2 * starts)

    return inputs


def sprinkled(*specials: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """About 300 elements of each row replaced, by one of the values each."""

    def change(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        place = torch.rand(values.shape, generator=generator, device=values.device)
        for number, special in enumerate(specials):
            low = number / len(specials) / 100
            values = values.masked_fill((place >= low) & (place < low + 1 / len(specials) / 100), special)
        return values

    return change


def short(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> Any:
    """Rows with fewer candidates than ``topk``, as many, and a few more."""
    counts = torch.tensor([0, 1, 31, 1000, args["topk"] - 1, args["topk"], args["topk"] + 1, 3000], dtype=torch.int32)
    starts = torch.arange(len(counts), dtype=torch.int32) * 7
    return rows(normal((len(counts), 4096), generator).to(device), args, starts, starts + counts)


def candidates(scores: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    column = torch.arange(scores.shape[1], device=scores.device)
    return (column >= starts[:, None]) & (column < ends[:, None])


def comparable(values: torch.Tensor) -> torch.Tensor:
    """NaN counts as the largest value, as in torch: it becomes infinity, and that the largest finite number."""
    finite = values.double().clamp(max=torch.finfo(torch.float32).max)
    return finite.masked_fill(values.isnan(), torch.inf)


def selected(
    args: Mapping[str, Any],
    scores: torch.Tensor,
    index: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """What of the kernel's parameters is determined: the values selected, sorted, and how many places they come from.

    Which of two equal values is selected, and in which order the indices come, is not. An index that is no candidate
    becomes NaN; a place without an index, -inf.
    """
    place = index.long().clamp(0, scores.shape[1] - 1)
    values = torch.gather(comparable(scores), 1, place)
    allowed = torch.gather(candidates(scores, starts, ends), 1, place) & (place == index)
    values = values.masked_fill(~allowed, torch.nan).masked_fill(index == -1, -torch.inf)
    places = torch.zeros_like(scores, dtype=torch.int32).scatter_(1, place, allowed.int())
    return {"index": values.sort(dim=1, descending=True).values, "places": places.sum(dim=1)}


def reference(
    args: Mapping[str, Any],
    scores: torch.Tensor,
    index: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """The ``topk`` largest values in [start, end) of each row; to be compared with ``selected``."""
    candidate = candidates(scores, starts, ends)
    values = comparable(scores).masked_fill(~candidate, -torch.inf)
    places = candidate.sum(dim=1).clamp(max=args["topk"])
    return {"index": torch.topk(values, args["topk"], dim=1).values, "places": places}


def torch_topk(args: Mapping[str, Any], scores: torch.Tensor, *others: torch.Tensor) -> Callable[[], Any]:
    """All of each row is sorted by value: a little more than was asked for."""
    return lambda: torch.topk(scores, args["topk"], dim=1, sorted=False)


top_2048 = Case(
    topk_selector,
    args={"topk": 2048},
    inputs=drawn(lambda values, generator: values),
    variants={
        "ties": Variant(drawn(lambda values, generator: (values * 16).round() / 16)),
        "negative": Variant(drawn(lambda values, generator: -values.abs())),
        "infinite": Variant(drawn(sprinkled(torch.inf, -torch.inf, 1e30, -1e30))),
        "nan": Variant(drawn(sprinkled(torch.nan, torch.inf))),
        "another size": Variant(drawn(lambda values, generator: values, batch=3, seq_len=5000)),
        "short": Variant(short),
    },
    reference=reference,
    outcome=selected,
    updates=["index"],
    tolerance=0.0,
    baselines={"torch.topk": torch_topk},
)
