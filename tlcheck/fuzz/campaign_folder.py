"""The folder of a campaign: how far it is, what was reached, each finding in a folder of its own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tlcheck.errors import UsageError
from tlcheck.files import make_folder, put
from tlcheck.fuzz.outcome import Symptom

_STATE, _FINDINGS, _KNOWN, _LOG = "state.json", "findings", "known", "log.jsonl"
_WEIGHTS = "weights.jsonl"


@dataclass
class Found:
    """A finding, or an example of what is wrong with tlcheck itself.

    place: its folder's name. sort: `refuted`, `crashed` or `failed`. shows: the symptom of the first claim. also: of
    others. what: the first sentence. made, changes: see `FuzzedKernel`. known: the finding of docs/findings.md that
    shows like it. count: how often it was met. against: what the other release says. lines: of the reduced kernel, 0
    where it is not reduced. history: since when, by which pass.
    """

    place: str
    sort: str
    shows: Symptom
    what: str
    number: int
    arch: str
    name: str
    made: str
    changes: tuple[str, ...] = ()
    also: tuple[Symptom, ...] = ()
    known: str = ""
    count: int = 1
    against: str = ""
    lines: int = 0
    history: str = ""

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Found:
        shows = Symptom(**fields.pop("shows"))
        also = tuple(Symptom(**each) for each in fields.pop("also"))
        return cls(**{**fields, "changes": tuple(fields["changes"])}, shows=shows, also=also)


@dataclass
class Met:
    """A record of a finding of docs/findings.md that was met again. number: of the first kernel with it.

    kernels: until then. seconds: of all benches until then. count: how often it was met.
    """

    number: int
    kernels: int
    seconds: float
    count: int = 1


@dataclass
class CampaignState:
    """A record of how far a campaign is. next: the number of the next kernel. sorts: outcomes. seconds: of all benches
    (wall).

    met: known findings, by their names.

    reached, calls: constructs and functions of the device library in kernels that count -> how many. drawn: productions
    in those -> how many. reasons: why kernels do not count -> how many.
    """

    next: int = 0
    sorts: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    lowering: float = 0.0
    seconds: float = 0.0
    found: list[Found] = field(default_factory=list)
    met: dict[str, Met] = field(default_factory=dict)

    @property
    def unknown(self) -> list[Found]:
        """The findings that nobody knows."""
        return [f for f in self.found if f.sort == "refuted" and not f.known]


class CampaignFolder:
    """The folder of one campaign, of one release. A later run goes on where the last one ended."""

    def __init__(self, path: Path, toolchain: str) -> None:
        """Raises UsageError where the folder holds something else, or another release's."""
        self.path = path
        make_folder(path / _FINDINGS)
        self.state = CampaignState()
        file = path / _STATE
        if file.exists():
            self._read(file, toolchain)
        self.toolchain = toolchain

    def _read(self, file: Path, toolchain: str) -> None:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            was, fields = content["toolchain"], content["state"]
            found = [Found.read(each) for each in fields.pop("found")]
            met = {name: Met(**each) for name, each in fields.pop("met", {}).items()}
            self.state = CampaignState(found=found, met=met)
            for name, value in fields.items():
                setattr(self.state, name, Counter(value) if isinstance(value, dict) else value)
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{file}: not the state of a campaign: name another folder") from error
        if was != toolchain:
            raise UsageError(f"{self.path} is of TileLang {was}, not {toolchain}: name another folder")

    def begin_at(self, number: int) -> None:
        """Begin at that kernel; where an earlier run of this folder has come further, go on there."""
        self.state.next = max(self.state.next, number)

    def save(self) -> None:
        """Write how far it is."""
        fields = {**vars(self.state), "found": [asdict(found) for found in self.state.found]}
        fields["met"] = {name: asdict(met) for name, met in self.state.met.items()}
        put(self.path / _STATE, json.dumps({"toolchain": self.toolchain, "state": fields}, indent=1) + "\n")

    def log(self, *facts: object) -> None:
        """Keep what one kernel came to: its number, arch, outcome, seed, claim and seconds."""
        self._append(_LOG, facts)

    def weigh(self, weights: Mapping[str, float]) -> None:
        """Keep the weights by which kernels are drawn from the next one on."""
        self._append(_WEIGHTS, (self.state.next, weights))

    def _append(self, name: str, facts: tuple[object, ...]) -> None:
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")

    def add(self, found: Found, text: str) -> None:
        """Keep a finding with its kernel."""
        folder = self.path / _FINDINGS / found.place
        make_folder(folder)
        put(folder / "kernel.py", text)
        self.state.found.append(found)

    def meet(self, names: Iterable[str], number: int, text: str) -> None:
        """Count known findings that a kernel has, and keep the first kernel of each."""
        state = self.state
        for name in names:
            if name in state.met:
                state.met[name].count += 1
                continue
            state.met[name] = Met(number, sum(state.sorts.values()), round(state.seconds, 1))
            make_folder(self.path / _KNOWN)
            put(self.path / _KNOWN / f"{name}.py", text)

    def alike(self, shows: Symptom, name: str) -> Found | None:
        """Return the finding that shows like this, if there is one. name: as which it is known, empty for none."""
        places = {f.place for f in self.state.found}
        alike = (f for f in self.state.found if f.shows == shows)
        return next((f for f in alike if f.known == name or (not name and f.known in places)), None)

    def kernel(self, found: Found) -> Path:
        """The file of a finding's kernel: the reduced one where there is one."""
        folder = self.path / _FINDINGS / found.place
        return folder / "reduced.py" if found.lines else folder / "kernel.py"

    def to_reduce(self) -> Iterator[Found]:
        """Findings that nobody knows, which are not reduced."""
        yield from (f for f in self.state.unknown if not f.lines)


def logged_as(path: Path, number: int) -> str | None:
    """Return from which seed a campaign made the kernel of a number; None if it made none."""
    return next((str(facts[3]) for facts in _lines(path / _LOG) if facts[0] == number), None)


def weights_of(path: Path, number: int) -> dict[str, float] | None:
    """Return the weights by which the kernel of a number was drawn; None if they were not kept."""
    last = None
    for first, weights in _lines(path / _WEIGHTS):
        last = weights if first <= number else last
    return last


def _lines(file: Path) -> Iterator[list[Any]]:
    if file.exists():
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())
