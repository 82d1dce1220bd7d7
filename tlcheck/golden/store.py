"""The folder `golden/`: approved goldens, pending ones beside them, and the approvals.

A decision is written to `approvals.toml` first and then carried out; whoever opens the store next carries out what a
killed process did not come to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tlcheck.errors import UsageError
from tlcheck.files import held, replace_all
from tlcheck.golden import approvals
from tlcheck.golden.approvals import Approvals, Decision
from tlcheck.golden.entry import PENDING_SUFFIX, Golden, Key, damage, placed
from tlcheck.golden.pending import META, Meta, Pending, read_meta

_PATIENCE = 30.0  # seconds; nobody holds the folder for longer than it takes to write some files
# For git: no other line ends, and what waits is nobody else's business.
_FOR_GIT = {
    ".gitattributes": "*.tir text eol=lf linguist-language=Python\n*.json text eol=lf\n*.toml text eol=lf\n",
    ".gitignore": "*.new\n*.pending.json\n.tlcheck-*\n",
}


@dataclass(frozen=True)
class Contents:
    """The goldens of a folder or of a git revision. approvals: of them."""

    goldens: Mapping[Key, Golden]
    approvals: Approvals

    def problem(self, key: Key) -> str:
        """Return why a golden that is there does not count as approved, in words; empty if it does."""
        golden, decision = self.goldens[key], self.approvals.approved.get(str(key))
        if decision is not None and decision.hash == golden.digest:
            return ""
        if found := damage(golden):
            return f"corrupt: {found}"
        if decision is None:
            return "not approved: nobody accepted it"
        return f"not approved: it was changed after {decision.who} accepted it on {decision.when[:10]}"


def contents(files: Mapping[str, bytes], where: str) -> Contents:
    """Return the files of the golden folder by path, pending ones left out. Raises UsageError."""
    goldens: dict[Key, dict[str, str]] = {}
    for path, data in sorted(files.items()):
        place = None if path.endswith(PENDING_SUFFIX) else placed(path)
        if place is not None and place[1] != META:
            goldens.setdefault(place[0], {})[place[1]] = data.decode("utf-8", "surrogateescape")
    text = files.get(approvals.FILE, b"").decode("utf-8", "replace")
    made = approvals.loads(text, f"{where}/{approvals.FILE}")
    return Contents({key: Golden(parts) for key, parts in goldens.items()}, made)


@dataclass(frozen=True)
class GoldenStore:
    """One golden folder; it need not exist yet."""

    folder: Path

    def read(self) -> Contents:
        """Return what is approved or claims to be. Raises UsageError."""
        with self._still():
            return contents(dict(self._files()), str(self.folder))

    def pending(self) -> list[Pending]:
        """Return what waits for a decision, sorted. Raises UsageError."""
        with self._still():
            return [self._pending(key, path) for key, path in self._metas()]

    def record(self, pending: Pending) -> None:
        """Put new content beside the approved one, in place of what waited there."""
        parts = pending.golden.parts if pending.golden else {}
        texts = {self._path(pending.key, name + PENDING_SUFFIX): text for name, text in parts.items()}
        with self._changing():
            texts |= {self.folder / name: text for name, text in _FOR_GIT.items() if not (self.folder / name).exists()}
            replace_all({**texts, self._path(pending.key, META): pending.meta()})

    def accept(self, pending: Pending, decision: Decision) -> None:
        """Raises UsageError if something else waits there by now; then nothing is accepted."""
        key = str(pending.key)
        with self._deciding(pending) as meta:
            made = self._approvals()
            approved = {**made.approved, key: decision}
            if pending.golden is None:
                self._remove(pending.key, keep=())
                del approved[key]
            self._write(Approvals(approved, {k: old for k, old in made.rejected.items() if k != key}))
            self._carry_out(pending.key, meta)

    def reject(self, pending: Pending, decision: Decision) -> None:
        """Forget the content, and keep that it was rejected."""
        with self._deciding(pending):
            made = self._approvals()
            self._write(msgspec.structs.replace(made, rejected={**made.rejected, str(pending.key): decision}))
            self.forget(pending.key)

    def forget(self, key: Key) -> None:
        """Remove what waits, without a decision."""
        try:
            self._path(key, META).unlink(missing_ok=True)
            for path in self._parts(key):
                if path.name.endswith(PENDING_SUFFIX):
                    path.unlink()
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}") from error

    def finish(self) -> None:
        """Carry out what was decided and not carried out. Raises UsageError."""
        with self._still():
            approved = self._approvals().approved
            for key, path in self._metas():
                try:
                    meta = read_meta(path.read_text(encoding="utf-8"))
                except (OSError, ValueError):
                    continue  # whoever needs it will say so; the next update replaces it
                decision = approved.get(str(key))
                if meta.hash and decision is not None and decision.hash == meta.hash:
                    self._carry_out(key, meta)

    def _changing(self) -> AbstractContextManager[int]:
        """Keep other processes out; the folder is made. Raises UsageError where that does not come to be."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.folder}: {error.strerror}") from error
        return held(self.folder, patience=_PATIENCE)

    def _still(self) -> AbstractContextManager[int | None]:
        """Hold the folder still while no other process changes it. A folder that is not there is left so."""
        return self._changing() if self.folder.is_dir() else nullcontext()

    @contextmanager
    def _deciding(self, pending: Pending) -> Iterator[Meta]:
        with self._changing():
            meta = self._meta(pending.key)
            if meta.hash != pending.digest:
                raise UsageError(f"{pending.key}: something else waits there by now: look at it again")
            yield meta

    def _carry_out(self, key: Key, meta: Meta) -> None:
        try:
            for name in meta.parts:
                new = self._path(key, name + PENDING_SUFFIX)
                if new.exists():
                    new.replace(self._path(key, name))
        except OSError as error:
            raise UsageError(
                f"{error.filename}: {error.strerror}; the next `tlcheck golden` goes on from here"
            ) from error
        self._remove(key, keep=meta.parts)
        self.forget(key)

    def _remove(self, key: Key, keep: Collection[str]) -> None:
        """The approved parts but for some."""
        stay = {self._path(key, name).name for name in keep}
        for path in self._parts(key):
            if path.name not in stay and not path.name.endswith((PENDING_SUFFIX, META)):
                path.unlink()

    def _parts(self, key: Key) -> list[Path]:
        """Every file of a golden, approved and pending."""
        prefix = self._path(key, "")
        if not prefix.parent.is_dir():
            return []
        return [path for path in prefix.parent.iterdir() if path.name.startswith(prefix.name)]

    def _metas(self) -> list[tuple[Key, Path]]:
        found = [(placed(p.relative_to(self.folder).as_posix()), p) for p in self.folder.rglob(f"*.{META}")]
        return sorted((place[0], path) for place, path in found if place is not None)

    def _approvals(self) -> Approvals:
        file = self.folder / approvals.FILE
        try:
            return approvals.loads(file.read_text(encoding="utf-8"), str(file)) if file.exists() else Approvals()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: {error}") from error

    def _write(self, made: Approvals) -> None:
        replace_all({self.folder / approvals.FILE: approvals.dumps(made)})

    def _meta(self, key: Key) -> Meta:
        path = self._path(key, META)
        try:
            return read_meta(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}: run `tlcheck golden update` again") from error

    def _pending(self, key: Key, path: Path) -> Pending:
        meta = self._meta(key)
        if not meta.hash:
            return Pending(key, None, meta.versions, meta.claims, meta.notes, meta.claimed)
        try:
            texts = {name: self._path(key, name + PENDING_SUFFIX).read_bytes() for name in meta.parts}
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}: run `tlcheck golden update` again") from error
        golden = Golden({name: data.decode("utf-8", "surrogateescape") for name, data in texts.items()})
        if golden.digest != meta.hash:
            raise UsageError(f"{path}: the content that waits was changed: run `tlcheck golden update` again")
        return Pending(key, golden, meta.versions, meta.claims, meta.notes, meta.claimed)

    def _path(self, key: Key, part: str) -> Path:
        return self.folder / f"{key.stem}.{part}"

    def _files(self) -> Iterator[tuple[str, bytes]]:
        try:
            for path in self.folder.rglob("*"):
                if path.is_file() and not path.name.startswith("."):
                    yield path.relative_to(self.folder).as_posix(), path.read_bytes()
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}") from error
