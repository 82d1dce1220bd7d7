"""Snapshots that no compiler made: broken in one to four places each, and then proved and executed.

    python benchmarks/fuzz.py [COUNT] [FIRST]

Each has to be refused as no snapshot, or judged, in bounded time and without an exception. What went wrong is printed,
with the number that makes the same snapshot again.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from tlcheck.execute.request import Request
from tlcheck.execute.worlds.budget import Budget
from tlcheck.snapshot import codec
from tlcheck.verdicts.judging import verdicts_of

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures"
REQUEST = Request(2, (0,), Budget(4_000, 1 << 26, 20.0))
MEMORY, PROOFS = 3 << 30, 10.0
_ODD: tuple[Any, ...] = (
    -1, 0, 1, 7, 2**31, 2**63, -(2**70), 10**400, 0.5, 1e308, -0.0, True, None, "", "A", "\ud800", "x" * 5000, [], {},
    [[]], "float32", "float8_e4m3x7", "handle", "shared.dyn", "local.fragment", "threadIdx.x", "int32x65536",
)  # fmt: skip


@cache
def _texts() -> tuple[str, ...]:
    files = sorted(file for folder in ("wrong", "edges", "mutations") for file in (FIXTURES / folder).iterdir())
    return tuple(file.read_text() for file in files if file.stat().st_size < 40_000)


def broken(number: int) -> str:
    """The text of one broken snapshot."""
    chance = random.Random(number)
    fields = json.loads(chance.choice(_texts()))
    changes = _CHANGES if chance.random() < 0.85 else _RAW
    for _ in range(chance.randint(1, 3)):
        chance.choice(changes)(fields, chance)
    text = json.dumps(fields)
    return text[: chance.randrange(len(text))] if chance.random() < 0.01 else text


def _node(fields: Any, chance: random.Random, kinds: tuple[str, ...] = ()) -> tuple[int, list[Any]]:
    """A node, of these kinds if there is one, and its number."""
    numbered = list(enumerate(fields["nodes"]))
    return chance.choice([(n, node) for n, node in numbered if node[0] in kinds] or numbered)


def _constant(fields: Any, chance: random.Random) -> None:
    _, node = _node(fields, chance, ("int", "float"))
    if node[0] == "int" and type(node[2]) is int:  # unless an earlier change made it something else
        node[2] = chance.choice((0, 1, -1, 3, 1 << 20, 2**31, 2**63, 10**30, node[2] + 1, node[2] - 1, -node[2]))
    elif node[0] == "float":
        node[2] = chance.choice((0.0, "nan", "inf", "-inf", 1e308, 5e-324))


def _sort(node: list[Any]) -> str:
    return "statement" if node[0][0].isupper() else node[0] if node[0] in ("buffer", "layout", "var") else "expression"


def _reference(fields: Any, chance: random.Random) -> None:
    """Something refers to another node of the same sort: the wrong buffer, statement, index or value."""
    nodes = fields["nodes"]
    for _ in range(40):
        number, node = _node(fields, chance)
        places = [p for p, value in enumerate(node) if p > 1 and type(value) is int and value < number]
        if not places or node[0] in ("int", "float", "var"):
            continue
        place = chance.choice(places)
        alike = [n for n in range(number) if _sort(nodes[n]) == _sort(nodes[node[place]])]
        node[place] = chance.choice(alike)
        return


def _word(fields: Any, chance: random.Random) -> None:
    """A text becomes one that stands in the same place elsewhere: another dtype, operator, call, scope or tag."""
    _, node = _node(fields, chance)
    place = chance.choice([p for p, value in enumerate(node) if type(value) is str])
    others = [n[place] for n in fields["nodes"] if len(n) > place and type(n[place]) is str and _sort(n) == _sort(node)]
    node[place] = chance.choice([*others, "float16", "int64", "bool", "int8x4"])


def _chain(fields: Any, chance: random.Random) -> None:
    """A long chain below a kernel: statements in statements, each once or twice."""
    checkpoint = chance.choice(list(fields["checkpoints"].values()))
    for _ in range(chance.choice((3, 25, 3000))):
        fields["nodes"].append(["Seq", 0, checkpoint["body"], *[checkpoint["body"]] * chance.choice((0, 0, 1))])
        checkpoint["body"] = len(fields["nodes"]) - 1


def _deep(fields: Any, chance: random.Random) -> None:
    """An expression inside of an expression, thousands of times."""
    for number, node in enumerate(fields["nodes"]):
        if node[0] == "Store" and len(node) > 3 and chance.random() < 0.5:
            at = node[3]
            dtype = fields["nodes"][at][1]
            new = [["add", dtype, number + place - 1 if place else at, at] for place in range(chance.choice((5, 2000)))]
            _insert(fields, number, new)
            fields["nodes"][number + len(new)][3] = number + len(new) - 1
            return


def _insert(fields: Any, number: int, new: list[Any]) -> None:
    """Put nodes before one, and move the references to what comes after: all integers that may be some."""
    moved = [
        [node[0], node[1], *[_moved(v, number, len(new)) for v in node[2:]]]
        if node[0] not in ("int", "float", "str", "var") else node
        for node in fields["nodes"][number:]
    ]  # fmt: skip
    fields["nodes"][number:] = [*new, *moved]
    for checkpoint in fields["checkpoints"].values():
        checkpoint["body"] += len(new)


def _moved(value: Any, number: int, by: int) -> Any:
    if isinstance(value, list):
        return [_moved(v, number, by) for v in value]
    return value + by if type(value) is int and value >= number else value


def _places(fields: Any, chance: random.Random) -> tuple[Any, Any]:
    """A container and a key of it, wherever it may be."""
    holder, key = fields, "nodes" if chance.random() < 0.6 and fields.get("nodes") else chance.choice(list(fields))
    while isinstance(holder[key], (list, dict)) and holder[key] and chance.random() < 0.85:
        holder = holder[key]
        key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
    return holder, key


def _replace(fields: Any, chance: random.Random) -> None:
    holder, key = _places(fields, chance)
    holder[key] = chance.choice(_ODD)


def _drop(fields: Any, chance: random.Random) -> None:
    holder, key = _places(fields, chance)
    del holder[key]


def _swap(fields: Any, chance: random.Random) -> None:
    (a, i), (b, j) = _places(fields, chance), _places(fields, chance)
    a[i], b[j] = deepcopy(b[j]), deepcopy(a[i])  # neither may come to hold itself


def _repeat(fields: Any, chance: random.Random) -> None:
    holder, key = _places(fields, chance)
    if isinstance(holder, list):
        holder[key:key] = [holder[key]] * chance.choice((1, 2, 50))


Change = Callable[[Any, random.Random], None]
_CHANGES: tuple[Change, ...] = (_constant, _constant, _reference, _reference, _reference, _word, _word, _chain, _deep)
_RAW: tuple[Change, ...] = (_replace, _drop, _swap, _repeat)


def outcome(number: int) -> str:
    """What becomes of one: `refused`, a verdict, or what is wrong with tlcheck."""
    try:
        snapshot = codec.loads(broken(number))
    except codec.CorruptSnapshot:
        return "refused"
    found = verdicts_of(snapshot, REQUEST, PROOFS)
    if found.failure is not None and found.failure.kind == "internal":
        return f"failed: {found.failure.message} ({found.failure.where})"
    faults = {claim.reason for claim in found.claims if "itself failed" in claim.reason}
    if faults:
        return f"fault: {min(faults)}"
    return "judged" if found.claims else "nothing to judge"


def main() -> int:
    """Returns the exit code: 1 if anything raised, or took longer than it may."""
    count, first = _argument(1, 10_000), _argument(2, 0)
    sys.setrecursionlimit(20_000)  # as in a judging process
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    found: Counter[str] = Counter()
    slowest, bad = (0.0, 0), 0
    for number in range(first, first + count):
        began = time.process_time()
        try:
            said = outcome(number)
        except Exception as error:
            said = f"raised: {type(error).__name__}: {error}"
        slowest = max(slowest, (time.process_time() - began, number))
        if said.partition(":")[0] in ("raised", "failed"):
            bad += 1
            print(number, said[:300], flush=True)
        found[said[:160]] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for said, times in found.most_common():
        print(f"{times:7} {said}")
    print(f"slowest: {slowest[0]:.1f} s of the processor (number {slowest[1]}); peak: {peak} MB; wrong: {bad}")
    return 1 if bad else 0


def _argument(place: int, default: int) -> int:
    return int(sys.argv[place]) if len(sys.argv) > place else default


if __name__ == "__main__":
    sys.exit(main())
