"""Pass configurations that the user sets over a kernel's own.

https://tilelang.com, "Pass Configurations"; TVM's PassContext knows the names of a release.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from typing import Any

import tilelang
from tilelang import tvm

from tlcheck.worker.failures import RequestError
from tlcheck.worker.protocol import PASS_CONFIG


def set_over(own: Mapping[Any, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return a kernel's own configurations with those given, by the names that the passes know.

    given: name -> value, as the user typed them. A name is TVM's (`tl.disable_wgmma`) or that of a
    `tilelang.PassConfigKey` (`TL_DISABLE_WGMMA`). Raises RequestError for one that this release does not have.
    """
    if not given:
        return dict(own)
    known = {str(name) for name in tvm.transform.PassContext.list_configs()}
    members = {key.name: str(key.value) for key in tilelang.PassConfigKey if str(key.value) in known}
    found = {str(getattr(name, "value", name)): value for name, value in own.items()}
    for name, text in given.items():
        place = members.get(name, name)
        if place not in known:
            close = difflib.get_close_matches(name, [*members, *known], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            message = f"--pass-config {name}: TileLang {tilelang.__version__} does not have it{hint}"
            raise RequestError(message, PASS_CONFIG)
        found[place] = _value(text)
    return found


def _value(text: str) -> Any:
    """A Python literal, `true` or `false`, else the text itself."""
    try:
        return {"true": True, "false": False}[text.lower()]
    except KeyError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
