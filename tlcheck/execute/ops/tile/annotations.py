"""Annotations of blocks that are maps from buffers, as a snapshot has them: `{name: value, other: {key: value}}`."""

from __future__ import annotations


def entries(text: str) -> dict[str, str]:
    """The entries of the outermost braces, as text."""
    found: dict[str, str] = {}
    depth, start = 0, 1
    for at, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if (sign == "," and depth == 1) or (sign == "}" and depth == 0):
            name, _, value = text[start:at].partition(":")
            if name.strip():
                found[name.strip()] = value.strip()
            start = at + 1
    return found
