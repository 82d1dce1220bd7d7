"""Review in a terminal: one pending change on the screen at a time, one key for each decision.

Every decision is on disk before the next screen comes. What is skipped waits, and the next review begins where this
one ended.
"""

from __future__ import annotations

import hashlib
import os
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from tlcheck.errors import UsageError
from tlcheck.exits import CLEAN
from tlcheck.files import cache_root
from tlcheck.golden.comparison import GoldenComparison, GoldenGroup, compare_goldens
from tlcheck.golden.decisions import Decisions
from tlcheck.golden.entry import Golden
from tlcheck.golden.pending import Pending
from tlcheck.golden.store import Contents, GoldenStore
from tlcheck.report.console import console
from tlcheck.report.diff_text import group_parts, plain_parts
from tlcheck.verdicts.words import plural

KEYS = "a accept   r reject   s skip   g accept all of this group   space/b page   p previous   q quit   ? help"
_HELP = (
    "a accept: asks why, and takes over what waits as approved. r reject: remembers why, and leaves what is approved. "
    "g: accept every change that is equal to this one, or all new goldens of this file. s skip, p previous: decide "
    "later. space, b: next page, page before. q: quit; what is decided is kept. Words: docs/golden.md"
)
_FRAME = 4  # lines of the screen that are no page


@dataclass(frozen=True)
class WaitingChange:
    """A record of what waits, beside what is approved. comparison: None for a new golden and for a removal."""

    pending: Pending
    comparison: GoldenComparison | None

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for changes of one group: equal changes, new goldens of one file, removals."""
        if self.comparison is not None:
            return self.comparison.signature
        return ("new", self.pending.key.file) if self.pending.golden is not None else ("removed",)


def changes(waiting: Sequence[Pending], approved: Contents) -> list[WaitingChange]:
    return [
        WaitingChange(pending, _comparison(approved.goldens.get(pending.key), pending.golden)) for pending in waiting
    ]


def _comparison(approved: Golden | None, new: Golden | None) -> GoldenComparison | None:
    if approved is None or new is None:
        return None
    try:
        return compare_goldens(approved, new)
    except ValueError:  # what is approved cannot be read: as good as new
        return None


def review(store: GoldenStore, decisions: Decisions) -> int:
    """Returns the exit code. Raises UsageError without a terminal, or where nothing waits."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "review needs a terminal; without one, `tlcheck golden check` shows what differs, and "
            "`tlcheck golden accept --reason TEXT` or `tlcheck golden reject` decides on all of it"
        )
    waiting = store.pending()
    if not waiting:
        raise UsageError(f"nothing waits in {store.folder}: `tlcheck golden update` comes first")
    approved = store.read()
    Review(store, decisions, approved, changes(waiting, approved)).run()
    return CLEAN


@dataclass
class Review:
    """position: of the change on the screen among those that are left; page: the first line of it that is shown."""

    store: GoldenStore
    decisions: Decisions
    approved: Contents
    left: list[WaitingChange]
    console: Console = field(default_factory=console)
    position: int = 0
    page: int = 0
    message: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        self.total = len(self.left)

    def run(self) -> None:
        self.position = _remembered(self.store.folder, self.left)
        while self.left:
            self.position %= len(self.left)
            _remember(self.store.folder, self.left[self.position])
            self._show()
            key = _read_key()
            if key in ("q", "\x04"):
                break
            self._act(key)
        self.console.print(f"{plural(len(self.left), 'change')} left to review")

    def _act(self, key: str) -> None:
        change = self.left[self.position]
        self.message = ""
        if key == "a":
            self._accept([change])
        elif key == "g":
            self._accept(self._group(change))
        elif key == "r":
            self.decisions.reject(change.pending, self._ask("reason to reject"))
            self._decided(change)
        elif key in "sp":
            self.position += 1 if key == "s" else -1
            self.page = 0
        elif key in " b":
            self.page = max(0, self.page + (self._height if key == " " else -self._height))
        elif key == "?":
            self.message = _HELP
        else:
            self.message = f"no such key; {KEYS}"

    def _group(self, change: WaitingChange) -> list[WaitingChange]:
        return [other for other in self.left if other.signature == change.signature]

    def _accept(self, chosen: Sequence[WaitingChange]) -> None:
        problems = [problem for change in chosen if (problem := self.decisions.problem(change.pending))]
        fine = [change for change in chosen if not self.decisions.problem(change.pending)]
        if fine and (reason := self._ask("reason to accept")):
            self.reason = reason
            for change in fine:
                self.decisions.accept(change.pending, reason)
                self._decided(change)
        self.message = "\n".join(problems)

    def _decided(self, change: WaitingChange) -> None:
        place = self.left.index(change)
        self.left.pop(place)
        self.position -= place < self.position
        self.page = 0

    def _ask(self, what: str) -> str:
        """Empty to change one's mind; the last reason is taken by `=`."""
        again = f", = for {self.reason!r}" if self.reason else ""
        answer = self.console.input(Text(f"{what} (empty: not now{again}): ")).strip()
        return self.reason if answer == "=" else answer

    @property
    def _height(self) -> int:
        return max(1, self.console.height - _FRAME - self.message.count("\n"))

    def _show(self) -> None:
        """The whole screen; what does not fit is on the next page."""
        with self.console.capture() as capture:
            for part in self._parts(self.left[self.position]):
                self.console.print(part, highlight=False)
        lines = capture.get().rstrip("\n").split("\n")
        self.page = min(self.page, max(0, len(lines) - 1))
        shown = lines[self.page : self.page + self._height]
        rest = len(lines) - self.page - len(shown)
        self.console.clear()
        decided = self.total - len(self.left)
        head = f"{self.position + 1} of {len(self.left)} left" + (f", {decided} decided" if decided else "")
        self.console.print(Text(f"{head}   {plural(rest, 'line')} more below" if rest else head, style="bold"))
        self.console.out("\n".join(shown), highlight=False)
        if self.message:
            self.console.print(Text(self.message, style="red"), highlight=False)
        self.console.print(Text(KEYS, style="reverse"), highlight=False)

    def _parts(self, change: WaitingChange) -> Iterator[RenderableType]:
        pending, key = change.pending, str(change.pending.key)
        names = [str(other.pending.key) for other in self._group(change)]
        names.sort(key=lambda name: name != key)
        for claim in pending.claims:
            known = f" (known: {claim.excuse.reason})" if claim.excuse is not None else ""
            yield Text(f"refuted: {claim.words}{known}", style="red")
        yield from (Text(note, style="yellow") for note in pending.notes)
        rejected = self.approved.approvals.rejected.get(key)
        if rejected is not None and rejected.hash == pending.digest:
            yield Text(f"rejected by {rejected.who} on {rejected.when[:10]}: {rejected.reason}", style="yellow")
        if change.comparison is not None:
            yield from group_parts(GoldenGroup(tuple(names), change.comparison), self.console.width)
        elif pending.golden is None:
            yield Text(f"{key}  to be removed", style="bold")
        else:
            made = ", ".join(f"{name} {version}" for name, version in pending.versions.items())
            yield Text(f"{key}  new, lowered with {made}", style="bold")
            yield from plain_parts(pending.golden)


def _read_key() -> str:
    """One key without Enter. Ctrl-C is KeyboardInterrupt; the end of input is Ctrl-D."""
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle, termios.TCSADRAIN)  # by default it would forget keys that came too early
        return os.read(handle, 1).decode(errors="replace") or "\x04"
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _place(folder: Path) -> Path:
    return cache_root() / "review" / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]


def _remember(folder: Path, change: WaitingChange) -> None:
    """A convenience: where the cache cannot be written, the next review begins at the start."""
    try:
        _place(folder).parent.mkdir(parents=True, exist_ok=True)
        _place(folder).write_text(str(change.pending.key), encoding="utf-8")
    except OSError:
        return


def _remembered(folder: Path, left: Sequence[WaitingChange]) -> int:
    try:
        key = _place(folder).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return 0
    return next((n for n, change in enumerate(left) if str(change.pending.key) == key), 0)
