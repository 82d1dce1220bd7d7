"""One difference between two kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Change:
    """kind: `dtype`, `shape`, `layout`, `stages`, `atomic`, `barrier`, `read`, ... subject: what it is of.

    before, after: in words, without what differs from kernel to kernel, so that equal rewrites are equal. detail: the
    rest, such as counts; it stands in place of `before -> after` where it is there. slower: whether it may cost time.
    """

    kind: str
    subject: str
    before: str
    after: str
    detail: str = ""
    slower: bool = False

    @property
    def words(self) -> str:
        """`dQ: AtomicAddx4 -> 4 x AtomicAdd`; `x: read 64 float16 -> 8 float16x8 in a block`."""
        return f"{self.subject}: {self._kind}{self.detail}" if self.detail else f"{self.subject}: {self.rewrite}"

    @property
    def takes_away(self) -> bool:
        """Whether there is less synchronization than before, or at another place."""
        return self.after in _GONE.get(self.kind, ())

    @property
    def risk(self) -> str:
        """`sync-risk`, `slower-risk` or `changed`, as far as the facts alone tell."""
        return "sync-risk" if self.takes_away else "slower-risk" if self.slower else "changed"

    @property
    def told(self) -> str:
        """The words, after the risk where there is one."""
        return self.words if self.risk == "changed" else f"{self.risk}: {self.words}"

    @property
    def rewrite(self) -> str:
        """Return what happened, without the subject."""
        return f"{self._kind}{self.before} -> {self.after}"

    @property
    def _kind(self) -> str:
        return f"{_KINDS[self.kind]} " if self.kind in _KINDS else ""

    def of(self, subjects: Iterable[str]) -> Change:
        """The same change of several subjects."""
        names = list(subjects)
        more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN + 1 else []
        return replace(self, subject=", ".join([*(names[:_SHOWN] if more else names), *more]))


_GONE = {
    "barrier": ("removed", "moved"),
    "barrier count": ("less often",),
    "wait": ("fewer",),
}
_KINDS = {  # those that `before -> after` does not say
    "layout": "layout",
    "functions": "functions",
    "read": "read",
    "read count": "read",
    "write": "write",
    "write count": "write",
}


def counted(old: int, new: int, noun: str) -> tuple[str, str]:
    """`2`, `3 stages`."""
    return str(old), f"{new} {noun}" if new == 1 else f"{new} {noun}s"
