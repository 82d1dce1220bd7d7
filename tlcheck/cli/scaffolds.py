"""The files that a new instruction and a new rule begin with. Each test fails until it is filled in."""

from __future__ import annotations

HANDLER = '''"""{name}: fill in what it does ({manual})."""

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("{name}")
def {name}(e: Expr, program: KernelProgram) -> Computation:
    """(address): fill in what becomes of the element."""
    raise NotModelled("{name}")
'''

SIGNATURE = '''"""{name}."""

from tlcheck.signatures.signature import Address, Family, Signature

FAMILY = Family("{name}", "{manual}", {{"{name}": Signature(updates=(Address(0),))}})
'''

INSTRUCTION_TEST = '''"""{name}, held against the manual ({manual})."""

import numpy as np

from tests.cpu.execute.ops.tile.building import Kernel, call, load, random
from tlcheck.signatures.table import destinations


def test_{name}_does_what_the_manual_says() -> None:
    kernel, a = Kernel(threads=8), random("int32", 8)
    address = call("address_of", load(kernel.tensor("B", "int32", a), kernel.tx)).value
    {name} = call("{name}", address)
    wanted = a  # fill in: what the manual makes of it
    assert np.array_equal(kernel.run({name})["B"], wanted)
    assert destinations({name}.value) == (address,)
'''

RULE = '''"""{id}: {title}

## What it does

Fill in what tlcheck looks at.

## Why is this bad?

Fill in what goes wrong on a GPU. The witness names block and thread.

## Example

```python
fill_in()
```

## Use instead

`tlcheck fix CASE` looks for a workaround.
"""

PROBLEM = "{problem}"
'''

RULE_TEST = '''"""{id}: a kernel that breaks it is found."""

from tests.cpu.checking import executed
from tests.fixtures.index import read
from tlcheck.execute.request import Request


def test_a_kernel_that_breaks_it_is_found() -> None:
    snapshot = next(each for each in read().fixtures if each.path == "rules/TLA001-good").snapshot()  # fill in
    claims = executed(snapshot, Request())
    assert "{id}" in [claim.finding.rule for claim in claims if claim.finding is not None]
'''
