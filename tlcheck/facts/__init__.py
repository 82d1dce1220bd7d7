"""Facts: what a lowered kernel asks of the machine, read from its snapshot alone.

    extract.facts_of(snapshot) -> Facts  frozen, deterministic, equal for equal kernels
    to_json(facts), from_json(data)      plain data both ways
    changes(before, after)               -> tuple[Change, ...], the most telling first; none between equal facts

`Facts` has, for the source: buffers (dtype, shape, bytes), loops with their pipeline stages, layouts; as
lowered: grid, threads, accesses (which instruction moves how much of which buffer, how often in a block), barriers,
tensor core instructions, shared memory. Names that a release makes up and forms of expressions that differ between
releases do not show in it.

`Change` has a kind, a subject, `before` and `after` in words, `words` for people, and whether it may be slower.
"""

from tlcheck.facts.changes import Change, changes
from tlcheck.facts.kernel_facts import Facts, from_json, to_json

__all__ = ["Change", "Facts", "changes", "from_json", "to_json"]
