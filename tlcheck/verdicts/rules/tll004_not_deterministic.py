"""TLL004: one release lowers one kernel in several ways

## What it does

With `--repeat`, tlcheck lowers the kernel again in a fresh process, by the same release, with the same arguments and
pass configurations. This rule finds a kernel whose TIR differs then.

## Why is this bad?

A search inside a pass has ended at a limit of time or steps, or a container is ordered by addresses. Chance decides
which form runs. tlcheck judges each form and reports the worst one.

The witness counts the forms, and names the first difference between the two most frequent ones.

## Example

A machine with other load, or a second run, gives the kernel another form.

```python
tilelang.compile(main)
```

## Use instead

Pin another release. Until then, compare measurements of this kernel with care, and check it with `--repeat` in CI.
"""

PROBLEM = "repetition"
