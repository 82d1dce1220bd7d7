"""Annotations of GitHub Actions: commands on standard output that put a message at a source line."""

from __future__ import annotations

from tlcheck.report.notices import Document, Told, cases_in_words, together

_SHOWN = 10  # GitHub shows no more of a kind from one step
_COMMANDS = {"error": "error", "hazard": "warning", "warning": "warning", "note": "notice"}


def render(document: Document) -> str:
    """One annotation for each line, as far as GitHub shows so many, else for each kind of notice; the verdict last."""
    told = [[t for t in together(document.subjects, apart=apart) if not t.first.accepted] for apart in (False, True)]
    lines = []
    for level, command in _COMMANDS.items():
        by_kind, by_line = ([t for t in each if t.first.level == level] for each in told)
        ours = by_line if len(by_line) < _SHOWN else by_kind
        lines += [_line(command, t) for t in ours[: _SHOWN - 1]]
        if len(ours) >= _SHOWN:
            lines.append(f"::{command} title=tlcheck::{len(ours) - _SHOWN + 1} more: see the report")
    command = "error" if document.failed else "warning" if document.incomplete else "notice"
    return "".join(f"{line}\n" for line in [*lines, f"::{command} title=tlcheck::{_data(document.verdict)}"])


def _line(command: str, told: Told) -> str:
    notice = told.first
    if len(told.members) == 1:
        words = [f"{told.members[0][0].words}: {notice.message}", *([notice.detail] if notice.detail else [])]
    else:
        words = [notice.title, *cases_in_words(told), *([f"such as {notice.detail}"] if notice.detail else [])]
    place = f"file={_property(notice.file)},line={max(notice.line, 1)},title={_property(f'tlcheck {notice.id}')}"
    return f"::{command} {place}::" + _data("\n".join(words))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
