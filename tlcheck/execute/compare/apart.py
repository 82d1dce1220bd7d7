"""Blocks that cannot run together, each by itself.

Worlds of one machine move in lockstep. Where threads wait in a branch, and blocks differ in how often, that can come to
an end that none of them has alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlcheck import reasons
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import merged
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.request import Request
from tlcheck.execute.schedule.clusters import members
from tlcheck.execute.schedule.launches import kernels
from tlcheck.execute.worlds.batches import statements_of
from tlcheck.execute.worlds.blocks import Block
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.reasons import Reason

UNWRITTEN = Reason(reasons.UNWRITTEN, "the blocks that ran write none of it")
_ALONE = Reason(reasons.APART, "its blocks could not run together")


def requests(levels: BothLevels) -> list[Request]:
    """A request for each cluster, or for each seed of a single one; none where that is one world of each of its blocks,
    or all blocks meet.

    Blocks that do little come first: what is wrong there is soon seen, and easier to follow.
    """
    if levels.meet:
        return []
    own = replace(levels.request, course=levels.course)
    seeds_of: dict[Block, list[int]] = {}
    for world in levels.worlds:
        seeds_of.setdefault(members(world.block, levels.cluster)[0], []).append(world.seed)
    if len(seeds_of) == 1:
        ((block, every),) = seeds_of.items()
        seeds = tuple(dict.fromkeys(every))
        return [replace(own, blocks=(block,), seeds=(seed,)) for seed in seeds] if len(seeds) > 1 else []
    kernel = kernels(levels.lowered)[-1]
    few = sorted(seeds_of, key=lambda block: statements_of(kernel, levels.sizes, block))
    return [replace(own, blocks=(block,), seeds=tuple(dict.fromkeys(seeds_of[block]))) for block in few]


def joined(levels: BothLevels, parts: Sequence[Execution], are_ordered: bool) -> Execution:
    """Return what executions of all requests say together; else the last one, which has found something in its own
    blocks, or the first that could not come to its end: nothing is known of that block.

    are_ordered: whether it is known that no block accesses what another one writes.
    """
    if not parts[-1].is_clean:
        return parts[-1]
    stopped = next((part for part in parts if not part.blocks), None)
    if stopped is not None:
        return stopped
    first = parts[0]
    ordered = {name: reason for part in parts for name, reason in part.ordered.items()}
    ordered |= {name: reason for part in parts for name, reason in part.ordered.items() if reason}
    if not are_ordered:
        ordered |= {o.name: _ALONE for o in first.outputs if not ordered.get(o.name, "")}
    return replace(
        first,
        outputs=tuple(_together([part.outputs[place] for part in parts]) for place in range(len(first.outputs))),
        blocks=tuple(dict.fromkeys(world.block for world in levels.worlds)),
        seeds=tuple(dict.fromkeys(world.seed for world in levels.worlds)),
        statements=(sum(part.statements[0] for part in parts), sum(part.statements[1] for part in parts)),
        ordered=ordered,
        contested=tuple(pair for part in parts for pair in part.contested),
        lawful=tuple(sorted({name for part in parts for name in part.lawful})),
        unreached=tuple(sorted(set(first.unreached).intersection(*(part.unreached for part in parts)))),
        faults=merged([fault for part in parts for fault in part.faults]),
        rounded=all(part.rounded for part in parts),
    )


def _together(outcomes: Sequence[OutputOutcome]) -> OutputOutcome:
    """Merge the parts' results of one output: a block may write none of it if others do."""
    writing = [outcome for outcome in outcomes if outcome.reason != UNWRITTEN]
    return next((outcome for outcome in writing if outcome.verdict != "agreed"), next(iter(writing), outcomes[0]))
