"""Kernels of mixtures of experts and embeddings, written from the pages of the findings and in the style of TileLang's
examples, by somebody who had not read how `tlcheck reduce` works.
"""

# ruff: noqa: C901

import tilelang
import tilelang.language as T


@T.macro
def quantize_rows(x, peak, scale, codes, scales, row, column, group, rows, columns, largest, eps):
    """Codes of the rows of a tile, and a scale for each row."""
    T.reduce_absmax(x, peak, dim=1, clear=True)
    for i in T.Parallel(rows):
        scale[i] = T.max(peak[i], eps) / largest
    for i in T.Parallel(rows):
        scales[row + i, group] = scale[i]
    for i, j in T.Parallel(rows, columns):
        x[i, j] = x[i, j] / scale[i]
    for i, j in T.Parallel(rows, columns):
        codes[row + i, column + j] = T.max(T.min(x[i, j], largest), -largest)


@tilelang.jit(out_idx=[-6, -5, -4, -3, -2, -1])
def routed_gate_up(
    num_tokens=128,
    hidden=128,
    intermediate=64,
    num_experts=8,
    topk=2,
    block_m=64,
    block_n=64,
    block_k=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    swiglu_limit=7.0,
    swiglu_alpha=1.702,
    fp8_max=448.0,
    eps=1e-4,
    count_tokens=True,
):
    """Gate and up projection of routed tokens, with router probabilities and a count of tokens (`joined`)."""
    assert block_m * topk == threads, "one thread for each routed pair"

    @T.prim_func
    def main(
        X: T.Tensor((num_tokens, hidden), dtype),
        W_gate: T.Tensor((hidden, intermediate), dtype),
        W_up: T.Tensor((hidden, intermediate), dtype),
        bias_gate: T.Tensor((intermediate,), accum_dtype),
        bias_up: T.Tensor((intermediate,), accum_dtype),
        router_logits: T.Tensor((num_tokens, num_experts), accum_dtype),
        topk_ids: T.Tensor((num_tokens, topk), "int32"),
        topk_weights: T.Tensor((num_tokens, topk), accum_dtype),
        valid_tokens: T.Tensor((1,), "int32"),
        H: T.Tensor((num_tokens, intermediate), dtype),
        router_probs: T.Tensor((num_tokens, num_experts), accum_dtype),
        tokens_per_expert: T.Tensor((num_tokens // block_m, num_experts), "int32"),
        prob_sums: T.Tensor((num_tokens, topk), accum_dtype),
        H_codes: T.Tensor((num_tokens, intermediate), accum_dtype),
        H_scales: T.Tensor((num_tokens, intermediate // block_n), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(intermediate, block_n), T.ceildiv(num_tokens, block_m), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_m, block_k), dtype)
            gate_shared = T.alloc_shared((block_k, block_n), dtype)
            up_shared = T.alloc_shared((block_k, block_n), dtype)
            H_shared = T.alloc_shared((block_m, block_n), dtype)
            counts = T.alloc_shared((num_experts,), "int32")
            gate_local = T.alloc_fragment((block_m, block_n), accum_dtype)
            up_local = T.alloc_fragment((block_m, block_n), accum_dtype)
            logits = T.alloc_fragment((block_m, num_experts), accum_dtype)
            logits_max = T.alloc_fragment((block_m,), accum_dtype)
            logits_sum = T.alloc_fragment((block_m,), accum_dtype)
            peak = T.alloc_fragment((block_m,), accum_dtype)
            scale = T.alloc_fragment((block_m,), accum_dtype)
            route_scale = T.alloc_fragment((block_m,), accum_dtype)
            tx = T.get_thread_binding()

            # softmax over the experts
            T.copy(router_logits[by * block_m : (by + 1) * block_m, :], logits)
            T.reduce_max(logits, logits_max, dim=1, clear=True)
            for i, j in T.Parallel(block_m, num_experts):
                logits[i, j] = T.exp2((logits[i, j] - logits_max[i]) * 1.44269504)
            T.reduce_sum(logits, logits_sum, dim=1, clear=True)
            for i, j in T.Parallel(block_m, num_experts):
                logits[i, j] = logits[i, j] / logits_sum[i]
            T.copy(logits, router_probs[by * block_m : (by + 1) * block_m, :])

            # one routed pair for each thread
            T.clear(counts)
            if count_tokens:
                expert = topk_ids[by * block_m + tx // topk, tx % topk]
                if expert >= 0 and expert < num_experts:
                    T.atomic_add(counts[expert], 1)

            # both projections
            T.clear(gate_local)
            T.clear(up_local)
            for k in T.Pipelined(T.ceildiv(hidden, block_k), num_stages=num_stages):
                T.copy(X[by * block_m, k * block_k], X_shared)
                T.copy(W_gate[k * block_k, bx * block_n], gate_shared)
                T.copy(W_up[k * block_k, bx * block_n], up_shared)
                T.gemm(X_shared, gate_shared, gate_local)
                T.gemm(X_shared, up_shared, up_local)

            # clamped SwiGLU
            for i, j in T.Parallel(block_m, block_n):
                gate_local[i, j] = T.min(gate_local[i, j] + bias_gate[bx * block_n + j], swiglu_limit)
                up_local[i, j] = T.max(T.min(up_local[i, j] + bias_up[bx * block_n + j], swiglu_limit), -swiglu_limit)
            for i, j in T.Parallel(block_m, block_n):
                gate_local[i, j] = gate_local[i, j] / (1.0 + T.exp(-swiglu_alpha * gate_local[i, j]))
            for i in T.Parallel(block_m):
                route_scale[i] = 0
                if by * block_m + i < valid_tokens[0]:
                    for k in T.serial(topk):
                        route_scale[i] += topk_weights[by * block_m + i, k]
            for i, j in T.Parallel(block_m, block_n):
                gate_local[i, j] = gate_local[i, j] * (up_local[i, j] + 1.0) * route_scale[i]
            T.copy(gate_local, H_shared)
            T.copy(H_shared, H[by * block_m, bx * block_n])

            # what the auxiliary loss needs
            if bx == 0:
                T.copy(counts, tokens_per_expert[by, :])
                for i, k in T.Parallel(block_m, topk):
                    prob_sums[by * block_m + i, k] = topk_weights[by * block_m + i, k] / num_tokens
            quantize_rows(
                gate_local,
                peak,
                scale,
                H_codes,
                H_scales,
                by * block_m,
                bx * block_n,
                bx,
                block_m,
                block_n,
                fp8_max,
                eps,
            )

    return main


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def dispatch_counts(
    num_tokens=512,
    hidden=256,
    num_experts=512,
    topk=4,
    threads=128,
    block_tokens=8,
    in_dtype="float16",
    accum_dtype="float32",
    fp8_max=448.0,
    eps=1e-4,
    group=128,
    smooth=True,
):
    """Scales of activations before they are sent to the experts, and the counts of all ranks (`reinterpreted`)."""
    num_groups = hidden // group
    num_blocks = T.ceildiv(num_tokens, block_tokens)
    vector = 4

    @T.prim_func
    def main(
        X: T.Tensor((num_tokens, hidden), in_dtype),
        norm_weight: T.Tensor((hidden,), accum_dtype),
        rank_counts: T.Tensor((topk, num_experts), "int32"),
        is_padding: T.Tensor((num_tokens,), "int32"),
        smooth_scale: T.Tensor((hidden,), accum_dtype),
        residual: T.Tensor((num_tokens, hidden), in_dtype),
        residual_out: T.Tensor((num_tokens, hidden), accum_dtype),
        row_max: T.Tensor((num_tokens,), accum_dtype),
        X_scaled: T.Tensor((num_tokens, hidden), accum_dtype),
        scales: T.Tensor((num_tokens, num_groups), accum_dtype),
        total_counts: T.Tensor((num_experts,), "int32"),
    ):
        with T.Kernel(num_blocks, threads=threads) as bx:
            x_shared = T.alloc_shared((block_tokens, hidden), in_dtype)
            x_local = T.alloc_fragment((block_tokens, hidden), accum_dtype)
            square = T.alloc_fragment((block_tokens, hidden), accum_dtype)
            mean_square = T.alloc_fragment((block_tokens,), accum_dtype)
            group_local = T.alloc_fragment((block_tokens, group), accum_dtype)
            group_max = T.alloc_fragment((block_tokens,), accum_dtype)
            scale_local = T.alloc_fragment((block_tokens,), accum_dtype)
            x_normed = T.alloc_shared((block_tokens, hidden), accum_dtype)
            tx = T.get_thread_binding()

            # RMS norm
            T.copy(X[bx * block_tokens, 0], x_shared)
            T.copy(x_shared, x_local)
            for i, j in T.Parallel(block_tokens, hidden):
                square[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(square, mean_square, dim=1)
            for i in T.Parallel(block_tokens):
                mean_square[i] = T.rsqrt(mean_square[i] / hidden + eps)
            for i, j in T.Parallel(block_tokens, hidden):
                x_local[i, j] = x_local[i, j] * mean_square[i] * norm_weight[j]
            for i, j in T.Parallel(block_tokens, hidden):
                if is_padding[bx * block_tokens + i] != 0:
                    x_local[i, j] = 0
            T.copy(x_local, x_normed)

            # one scale for each group of 128
            for g in T.serial(num_groups):
                for i, j in T.Parallel(block_tokens, group):
                    group_local[i, j] = x_normed[i, g * group + j]
                if smooth:
                    for i, j in T.Parallel(block_tokens, group):
                        group_local[i, j] = group_local[i, j] * smooth_scale[g * group + j]
                quantize_rows(
                    group_local,
                    group_max,
                    scale_local,
                    X_scaled,
                    scales,
                    bx * block_tokens,
                    g * group,
                    g,
                    block_tokens,
                    group,
                    fp8_max,
                    eps,
                )

            # the residual stream and the share of each token that is padding
            for i, j in T.Parallel(block_tokens, hidden):
                x_local[i, j] = x_normed[i, j] + residual[bx * block_tokens + i, j]
            for i, j in T.Parallel(block_tokens, hidden):
                residual_out[bx * block_tokens + i, j] = x_local[i, j]
            T.reduce_max(x_local, mean_square, dim=1)
            for i in T.Parallel(block_tokens):
                row_max[bx * block_tokens + i] = mean_square[i]

            # the first blocks add up how many tokens each rank sends to each expert
            if bx < topk:
                for step in T.serial(num_experts // (threads * vector)):
                    T.atomic_addx4(
                        total_counts[step * threads * vector + tx * vector],
                        rank_counts[bx, step * threads * vector + tx * vector],
                    )

    return main


@tilelang.jit
def multimodal_embedding_grad(
    num_text=64,
    num_image=64,
    vocab=32,
    dim=128,
    block_tokens=16,
    threads=128,
    dtype="float32",
    accum_dtype="float32",
    padding_idx=0,
    grad_scale=0.5,
    max_norm=16.0,
    scale_by_norm=True,
    fp8_max=448.0,
    eps=1e-4,
):
    """Gradient of a table that text tokens and image patches share, and statistics of it (`either`)."""
    num_tokens = num_text + num_image

    @T.prim_func
    def main(
        ids: T.Tensor((num_tokens,), "int32"),
        dText: T.Tensor((num_text, dim), dtype),
        dImage: T.Tensor((num_image, dim), dtype),
        text_weight: T.Tensor((num_text,), accum_dtype),
        image_weight: T.Tensor((num_image,), accum_dtype),
        position_grad: T.Tensor((num_tokens, dim), accum_dtype),
        norms: T.Tensor((num_tokens,), accum_dtype),
        clipped: T.Tensor((num_tokens,), "int32"),
        dPosition: T.Tensor((num_tokens, dim), accum_dtype),
        codes: T.Tensor((num_tokens, dim), accum_dtype),
        scales: T.Tensor((num_tokens, 1), accum_dtype),
        patch_mean: T.Tensor((num_image,), accum_dtype),
        dBias: T.Tensor((num_tokens,), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(num_tokens, block_tokens), threads=threads) as bx:
            grad = T.alloc_fragment((block_tokens, dim), accum_dtype)
            square = T.alloc_fragment((block_tokens, dim), accum_dtype)
            norm = T.alloc_fragment((block_tokens,), accum_dtype)
            factor = T.alloc_fragment((block_tokens,), accum_dtype)
            clip = T.alloc_fragment((block_tokens,), "int32")
            mean = T.alloc_fragment((block_tokens,), accum_dtype)
            id_shared = T.alloc_shared((block_tokens,), "int32")
            start = bx * block_tokens

            # gradient of the positions
            for i in T.Parallel(block_tokens):
                id_shared[i] = ids[start + i]
            for i, j in T.Parallel(block_tokens, dim):
                grad[i, j] = position_grad[start + i, j] * grad_scale

            # clip it by its norm
            for i, j in T.Parallel(block_tokens, dim):
                square[i, j] = grad[i, j] * grad[i, j]
            T.reduce_sum(square, norm, dim=1)
            for i in T.Parallel(block_tokens):
                norm[i] = T.sqrt(norm[i])
            for i in T.Parallel(block_tokens):
                factor[i] = 1.0
                clip[i] = 0
                if norm[i] > max_norm:
                    factor[i] = max_norm / norm[i]
                    clip[i] = 1
            if scale_by_norm:
                for i, j in T.Parallel(block_tokens, dim):
                    grad[i, j] = grad[i, j] * factor[i]
            T.reduce_sum(grad, mean, dim=1)
            for i in T.Parallel(block_tokens):
                mean[i] = mean[i] / dim
            for i, j in T.Parallel(block_tokens, dim):
                if id_shared[i] == padding_idx:
                    grad[i, j] = 0
                else:
                    grad[i, j] = grad[i, j] - mean[i]
            for i in T.Parallel(block_tokens):
                norms[start + i] = norm[i]
                clipped[start + i] = clip[i]
            T.copy(grad, dPosition[start, 0])
            quantize_rows(grad, norm, factor, codes, scales, start, 0, 0, block_tokens, dim, fp8_max, eps)

            # the patches' mean, for the projector
            if start >= num_text:
                for i, j in T.Parallel(block_tokens, dim):
                    square[i, j] = dImage[start - num_text + i, j] * grad_scale
                T.reduce_sum(square, mean, dim=1)
                for i in T.Parallel(block_tokens):
                    patch_mean[start - num_text + i] = mean[i] / dim

            # the weight of each token, from its modality, is a bias of the softmax
            for i in T.Parallel(block_tokens):
                T.atomic_add(
                    dBias[start + i],
                    T.if_then_else(start + i < num_text, text_weight[start + i], image_weight[start + i - num_text]),
                )
            # so is the gradient of the first channel
            for i in T.Parallel(block_tokens):
                if start + i < num_text:
                    T.atomic_add(dBias[start + i], dText[start + i, 0])
                else:
                    T.atomic_add(dBias[start + i], dImage[start + i - num_text, 0])

    return main
