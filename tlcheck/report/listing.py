"""One checkpoint of a snapshot as a file to read: the TIR from the first line on, so that lines have the numbers that
witnesses name, then what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tlcheck.snapshot.checkpoint import BEFORE_LOWERING
from tlcheck.snapshot.ir import Block, Function, Snapshot
from tlcheck.snapshot.text import render, render_layout
from tlcheck.snapshot.walk import statements

CUDA = "cuda"
_NUMBER = re.compile(r"\d{3}-")


def listings(snapshot: Snapshot, at: str = "") -> dict[str, str]:
    """File name -> text: of all checkpoints and the CUDA source, or of those that `at` names."""
    found = {}
    for number, name in enumerate(snapshot.checkpoints):
        if not at or _is_named(at, name, snapshot.passes.get(name, "")):
            numbered = name if _NUMBER.match(name) else f"{number:02}-{name}"
            function = snapshot.checkpoints[name]
            lines = [*_what(snapshot, name), *_layouts(function)]
            found[f"{numbered.replace('/', '_')}.py"] = f"{render(function)}\n{_comment(lines, '#')}"
    if snapshot.cuda and at in ("", CUDA):
        found["kernel.cu"] = _comment(_what(snapshot, CUDA), "//") + "\n" + snapshot.cuda.rstrip("\n") + "\n"
    return found


def _is_named(at: str, checkpoint: str, pass_name: str) -> bool:
    """Whether its own name, or if every pass is kept its pass, is asked for: `LowerTileOp`, `tl.LowerTileOp`."""
    if not _NUMBER.match(checkpoint):
        return at == checkpoint
    return at == checkpoint or _plain(at) == _plain(pass_name)


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "").lower()


def _what(snapshot: Snapshot, checkpoint: str) -> Iterator[str]:
    yield f"{snapshot.file}::{snapshot.case}, {snapshot.target}, {_pairs(snapshot.toolchain, ' ')}"
    if snapshot.args:
        yield f"arguments: {_pairs(snapshot.args, '=')}"
    if snapshot.pass_configs:
        yield f"pass configs: {_pairs(snapshot.pass_configs, '=')}"
    if checkpoint == CUDA:
        yield "generated source"
    elif pass_name := snapshot.passes.get(checkpoint, ""):
        yield f"{checkpoint}: {'before' if checkpoint in BEFORE_LOWERING else 'after'} {pass_name}"
    else:
        yield checkpoint


def _pairs(mapping: Mapping[str, str], sign: str) -> str:
    return ", ".join(f"{key}{sign}{value}" for key, value in mapping.items())


def _layouts(function: Function) -> Iterator[str]:
    """Each layout once: a map stands on every block that encloses its uses."""
    blocks = (stmt for stmt in statements(function.body) if isinstance(stmt, Block))
    texts = dict.fromkeys(render_layout(layout, str(data.value)) for b in blocks for data, layout in b.layouts)
    if texts:
        yield "layouts:"
        yield from (f"  {text}" for text in texts)


def _comment(lines: Iterator[str] | list[str], sign: str) -> str:
    """Every line of every text as a comment: an argument may hold line breaks."""
    return "".join(f"{sign} {line}\n" for text in lines for line in text.splitlines())
