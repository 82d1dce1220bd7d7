"""`approvals.toml`: who accepted or rejected which content of which golden, when and why."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import Any

from tlcheck.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "approvals.toml"
_HEAD = """\
# Who accepted or rejected which golden, when and why. Written by `tlcheck golden`: a golden whose content has another
# hash than here is not approved.
"""


@dataclass(frozen=True)
class Decision:
    """hash: of the golden's content. when: UTC, ISO 8601. findings: those that the content has, each with the reason
    for which it was accepted."""

    who: str
    when: str
    reason: str
    hash: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Approvals:
    """By `str(key)`. rejected: the last rejection of each, to be shown when the same content comes again."""

    approved: Mapping[str, Decision] = field(default_factory=dict)
    rejected: Mapping[str, Decision] = field(default_factory=dict)


def decision(digest: str, reason: str, findings: tuple[str, ...] = ()) -> Decision:
    """One that is made now by the user."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Decision(_user(), now, reason, digest, findings)


def _user() -> str:
    """As git knows them, else the login name."""
    parts = [_git_config("user.name"), _git_config("user.email")]
    if any(parts):
        return " ".join(part if "@" not in part else f"<{part}>" for part in parts if part)
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _git_config(name: str) -> str:
    try:
        done = subprocess.run(["git", "config", name], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def dumps(approvals: Approvals) -> str:
    """Sorted, so that a decision is one place in a git diff."""
    text = _HEAD
    for kind, decisions in (("approved", approvals.approved), ("rejected", approvals.rejected)):
        for key, made in sorted(decisions.items()):
            text += f"\n[{kind}.{_string(key)}]\n{_entries(made)}"
    return text


def _entries(made: Decision) -> str:
    text = "".join(f"{name} = {_string(getattr(made, name))}\n" for name in ("who", "when", "reason", "hash"))
    if made.findings:
        text += f"findings = [{', '.join(_string(finding) for finding in made.findings)}]\n"
    return text


def _string(text: str) -> str:
    """A basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def loads(text: str, where: str) -> Approvals:
    """Raises UsageError, which names `where`, for anything but what `dumps` writes."""
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.splitlines()):
        raise UsageError(f"{where} has merge-conflict markers: keep the entries of both sides, for one golden either")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: {error}") from error
    if unknown := sorted(set(content) - {"approved", "rejected"}):
        raise UsageError(f"{where}: unknown table [{unknown[0]}]")
    read = {kind: _decisions(content.get(kind, {}), where) for kind in ("approved", "rejected")}
    return Approvals(read["approved"], read["rejected"])


def _decisions(table: Any, where: str) -> dict[str, Decision]:
    if not isinstance(table, dict):
        raise UsageError(f'{where}: expected tables such as [approved."kernel.py::case sm_90"]')
    return {key: _decision(key, entry, where) for key, entry in table.items()}


def _decision(key: str, entry: Any, where: str) -> Decision:
    names = {f.name for f in fields(Decision)}
    required = names - {"findings"}
    if not isinstance(entry, dict) or not required <= set(entry) <= names:
        raise UsageError(f"{where}: {key}: an entry has {', '.join(sorted(required))}")
    findings = entry.get("findings", [])
    texts = [*(entry[name] for name in required), *(findings if isinstance(findings, list) else [None])]
    if not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{where}: {key}: all values are texts")
    return Decision(**{**entry, "findings": tuple(findings)})
