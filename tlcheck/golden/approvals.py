"""`approvals.toml`: who accepted or rejected which content of which golden, when and why."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
from datetime import datetime, timezone

import msgspec

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


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """hash: of the golden's content. when: UTC, ISO 8601. findings: those that the content has, each with the reason
    for which it was accepted. claims: what was claimed of the kernel then, with the verdicts."""

    who: str
    when: str
    reason: str
    hash: str
    findings: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """`Ada <ada@x.org> on 2026-01-01: faster`."""
        return f"{self.who} on {self.when[:10]}: {self.reason}"


class Approvals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Decisions by `str(key)`. rejected: the last rejection of each, shown when the same content comes again."""

    approved: dict[str, Decision] = {}
    rejected: dict[str, Decision] = {}


def decision(digest: str, reason: str, findings: tuple[str, ...] = (), claims: tuple[str, ...] = ()) -> Decision:
    """One that is made now by the user."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Decision(_user(), now, reason, digest, findings, claims)


def _user() -> str:
    """Return the user as git knows them, else the login name."""
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
    for name in ("findings", "claims"):
        if texts := getattr(made, name):
            text += f"{name} = [{', '.join(map(_string, texts))}]\n"
    return text


def _string(text: str) -> str:
    """A basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def loads(text: str, where: str) -> Approvals:
    """Raises UsageError, which names `where`, for anything but what `dumps` writes."""
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.splitlines()):
        raise UsageError(f"{where} has merge-conflict markers: keep the entries of both sides, for one golden either")
    try:
        return msgspec.convert(tomllib.loads(text), Approvals)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{where}: {error}") from error
