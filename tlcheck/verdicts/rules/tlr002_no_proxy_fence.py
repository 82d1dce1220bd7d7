"""TLR002: no fence between a thread's write and the async proxy

## What it does

Bulk copies and wgmma read shared memory through the async proxy. They see a thread's write only after
`fence.proxy.async` (PTX, "Proxies"). The fence must be executed between the write and the operation, by the writer or
by the thread that starts the operation. A barrier alone is not enough.

An mbarrier that a bulk copy completes needs this fence, or `fence.mbarrier_init`, after its initialization.

## Why is this bad?

The operation may read old contents. If no schedule that was tried gave a wrong value, the finding is a `hazard` (it
breaks a rule of the manual) and not an `error`.

The witness names the write and the read.

## Example

Bulk copies cannot load these rows. Threads copy them with cp.async, and wgmma reads them without a fence.

```python
for k in T.Pipelined(3, num_stages=3):
    T.copy(A[0:64, k * 32 : k * 32 + 32], a)
    T.copy(B[k * 32 : k * 32 + 32, 0:64], b)
    T.gemm(a, b, c)
```

```
$ tlcheck check kernels.py::drained --arch sm_90 --no-why
kernels.py:311: TLR002 no-proxy-fence (hazard): nothing orders two accesses to a: between them
   fence.proxy.async is missing   [TileLang 0.1.15, sm_90]
    311 | T.gemm(a, b, c)
        |   read by the async proxy: block (0, 0, 0), thread 0, ki = 0, TIR line 51
    309 | T.copy(A[0:64, k * 32 : k * 32 + 32], a)
        |   write: block (0, 0, 0), thread 0, i = 0, TIR line 19
   fence.proxy.async is missing between the write of a at line 309 (thread 0, TIR line 19) and the
   read of a at line 311 (thread 0, TIR line 51)
   TLR002 b: nothing orders two accesses to b: between them fence.proxy.async is missing
   kernel: kernels.py::drained
   blame: TileLang 0.1.15 (tl.InjectFenceProxy)
   help: `tlcheck fix kernels.py::drained --arch sm_90 --toolchain pinned` looks for a workaround;
         `tlcheck explain TLR002`

1 hazard in TileLang
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. Or put
`T.fence_proxy_async()` after the barrier, if the language allows it there (not inside T.Pipelined).
"""

PROBLEM = "fence"
