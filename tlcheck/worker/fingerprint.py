"""A kernel before the first pass, as one hash: equal ones are lowered alike, wherever their lines stand in the file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlcheck.worker import kernel_forms, lowering
from tlcheck.worker.graph import as_graph


@dataclass(frozen=True)
class KernelFingerprint:
    """digest: of the IR, with its lines as places among `lines`, and of the configuration of passes.

    lines: those of the kernel's file that the IR names, in order.
    """

    digest: str
    lines: tuple[int, ...]


def fingerprint(prim_func: Any, pass_configs: Mapping[str, Any], file: str) -> KernelFingerprint:
    """Return what a PrimFunc of this file is. Raises what TVM raises where it cannot be written as JSON."""
    whole = json.loads(lowering.graph_text(prim_func))
    graph = as_graph(whole)
    spans = graph.of("Span")
    wanted = os.path.realpath(file)
    files = {graph.data[index]["source_name"] for index in spans}
    same = {name for name in files if os.path.realpath(graph.text(name)) == wanted}
    own = {index for index in spans if graph.data[index]["source_name"] in same}
    lines = sorted({graph.data[index]["line"] for index in own})
    places = {line: place for place, line in enumerate(lines)}
    data = list(graph.data)
    for index in spans:
        data[index] = places[graph.data[index]["line"]] if index in own else None
    beside = {key: value for key, value in whole.items() if key != "nodes"}
    content = [graph.types, data, beside, kernel_forms.configs_as_text(pass_configs)]
    return KernelFingerprint(hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest(), tuple(lines))
