"""TLR002: no fence between a thread's write and the async proxy

Bulk copies and wgmma read shared memory through the async proxy. They see what threads have written only after
`fence.proxy.async` (PTX, "Proxies"). The writer executes it, or the thread that starts the operation, on the way from
the write to it. A barrier alone is not enough. An mbarrier that a bulk copy completes needs such a fence, or
`fence.mbarrier_init`, after it is made.

It weighs `hazard` if no value was wrong in any schedule that was tried.

The witness names the write and the read.

What to do: `tlcheck fix CASE` looks for a pass configuration, an argument or a release that has it right; or put
`T.fence_proxy_async()` after the barrier, where the language allows it there (not inside of T.Pipelined).
"""

PROBLEM = "fence"
