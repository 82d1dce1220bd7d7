"""TLL002: threads wait for an event that never happens

## What it does

All threads of a block wait at barriers or mbarriers, no copy is under way, and no thread can go on. The source ends
on the same inputs.

## Why is this bad?

On a GPU the kernel hangs.

The witness names the barriers or mbarriers.

## Example

In the TIR: the barrier counts 128 threads, and only 64 reach it.

```python
if tx < 64:
    T.tvm_storage_sync("shared")
```

## Use instead

`tlcheck fix CASE` looks for a pass configuration, an argument or a release with which the kernel is right. It also
tries `TL_DISABLE_WARP_SPECIALIZED=True`.
"""

PROBLEM = "deadlock"
