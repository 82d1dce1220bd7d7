"""TLR002: no fence between a thread's write and the async proxy

## What it does

Bulk copies and wgmma read shared memory through the async proxy. They see a thread's write only after
`fence.proxy.async` (PTX, "Proxies"). The fence must be executed between the write and the operation, by the writer or
by the thread that starts the operation. A barrier alone is not enough.

An mbarrier that a bulk copy completes needs this fence, or `fence.mbarrier_init`, after its initialization.

## Why is this bad?

The operation may read old contents. The finding weighs `hazard` if no value was wrong in any schedule that was tried.

The witness names the write and the read.

## Example

In the TIR: a barrier stands between the write and the bulk store, but no fence.

```python
s[tx] = A[tx]
T.tvm_storage_sync("shared")
if tx == 0:
    T.tma_store(B, s)
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. Or put
`T.fence_proxy_async()` after the barrier, if the language allows it there (not inside T.Pipelined).
"""

PROBLEM = "fence"
