"""Define what `tlcheck diff` compares, whatever it is given as: texts by checkpoint, and facts where a snapshot was
there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.golden.entry import COST, FACTS, TEXT_SUFFIX, Golden, placed
from tlcheck.golden.recording import golden_of
from tlcheck.golden.store import GoldenStore
from tlcheck.golden.text_document import LAYOUT
from tlcheck.snapshot.ir import Snapshot

_CUDA = "kernel.cu"
_LISTING = re.compile(r"\d{2}-(?P<checkpoint>[\w-]+)\.py|(?P<pass>\d{3}-.+)\.py")
_LAYOUT_LINE = re.compile(r"#   (.+: \(.*\) -> .*)")


def of_snapshot(snapshot: Snapshot) -> Golden:
    """All checkpoints, and the CUDA source."""
    golden = golden_of(snapshot, tuple(snapshot.checkpoints))
    return Golden({**golden.parts, f"cuda{TEXT_SUFFIX}": snapshot.cuda}) if snapshot.cuda else golden


def of_path(path: Path) -> Mapping[str, Golden] | None:
    """Read a golden, a golden folder or a dump's folder; None for anything else. Raises UsageError."""
    try:
        if path.suffix == TEXT_SUFFIX:
            return _golden(path)
        if not path.is_dir():
            return None
        listings = {name: file for file in path.iterdir() if (name := _listing(file.name))}
        if listings:
            return {"": Golden({f"{name}{TEXT_SUFFIX}": _dumped(file) for name, file in sorted(listings.items())})}
        found = {str(key): golden for key, golden in GoldenStore(path).read().goldens.items()}
        return found or None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error


def _golden(path: Path) -> Mapping[str, Golden]:
    """The golden that a file is part of, with its facts."""
    place = placed(f"_/{path.name}")
    if place is None:
        raise UsageError(f"{path}: goldens are called NAME.ARCH.CHECKPOINT{TEXT_SUFFIX}")
    prefix = path.name.removesuffix(place[1])
    parts = {file.name.removeprefix(prefix): file for file in path.parent.iterdir() if file.name.startswith(prefix)}
    texts = {name: f.read_text(encoding="utf-8") for name, f in parts.items() if name in (place[1], FACTS, COST)}
    if place[1] not in texts:
        raise UsageError(f"{path}: no such file")
    return {f"{place[0].name} {place[0].target}": Golden(texts)}


def _listing(name: str) -> str:
    """The checkpoint of a file of a dump; empty for other files."""
    found = _LISTING.fullmatch(name)
    if found is None:
        return "cuda" if name == _CUDA else ""
    return found["checkpoint"] or found["pass"]


def _dumped(file: Path) -> str:
    """A listing as a golden's text, without the comment that says whose it is."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if file.name == _CUDA:
        return "\n".join(lines) + "\n"
    code = [line for line in lines if line and not line.startswith("#")]
    layouts = [f"    {LAYOUT}{found[1]}" for line in lines if (found := _LAYOUT_LINE.fullmatch(line))]
    return "\n".join([*code[:1], *layouts, *code[1:]]) + "\n"
