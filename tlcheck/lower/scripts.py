"""Scripts: kernel files that declare no case and are run to see which kernels they compile."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shlex
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tlcheck.errors import UsageError
from tlcheck.execute.request import GivenInputs
from tlcheck.lower.runs import CapturedOrigin, Lowered, MadeInputs, RecordedCall, Run, near
from tlcheck.lower.selection import Selection
from tlcheck.worker.capture.parts import RESULT, part_names
from tlcheck.worker.capture.pytests import is_test
from tlcheck.worker.jobs import CaptureJob
from tlcheck.worker.protocol import Answer, Failure

_DECLARES = re.compile(rb"\b(tlcheck|Case)\b")
_CLASS = re.compile(rb"^class Case\b", re.MULTILINE)
_LEFT_OUT = ("skipped", "failed", "left")  # among the counts of tests
_PRINTED = 100  # lines of what a script printed
_MAKES_KERNEL = re.compile(r"\b(jit|prim_func)\b")


@dataclass(frozen=True)
class Scripts:
    """The way in which scripts are run. args: their command line. max_configs: of each autotuned kernel.

    keep_going: one that ends before its first kernel is passed over, else it counts as not checked.
    live: there is a GPU, everything happens for real. record_limit, sides: see `CaptureJob`.
    """

    args: tuple[str, ...] = ()
    max_configs: int = 1
    keep_going: bool = False
    live: bool = False
    record_limit: int = 0
    sides: int = 1

    @property
    def variables(self) -> Mapping[str, str]:
        """Return what a worker's environment has to be like: launched kernels take tensors by the quick way."""
        return {"TVM_FFI_DISABLE_TORCH_C_DLPACK": "0"} if self.live else {}


@dataclass(frozen=True)
class CapturedKernel:
    """A kernel that a script compiled. name: `FUNCTION[k=v,...]`. args: those given, as text.

    snapshot: its file, or `failure` says why there is none. origin: see `Lowered`. inputs: what its calls passed; None
    where none was seen.
    """

    name: str
    args: Mapping[str, str]
    origin: CapturedOrigin | None = None
    snapshot: Path | None = None
    failure: Failure | None = None
    unsaved: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    recorded: RecordedCall | None = None
    inputs: MadeInputs | None = None


@dataclass(frozen=True)
class Captured:
    """A record of what a script came to. ended: why it did not come to its end. names: kernels that it defines.

    refused: those that TileLang refuses, as the script expects. needing: what those of `names` lack to be lowered.
    tests: of a test file, see `TestRun.counts`. printed: the end of what it printed, if it ended early.
    """

    kernels: tuple[CapturedKernel, ...] = ()
    ended: Failure | None = None
    names: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    needing: str = ""
    tests: Mapping[str, int] = field(default_factory=dict)
    printed: str = ""


@dataclass(frozen=True)
class End:
    """The point that a script came to. run: of the script itself. kernels: captured until then. ended: what ended it
    before its end. remarks: see `Script`. tests, printed: see `Captured`.
    """

    run: Run
    kernels: int
    ended: Failure | None
    remarks: tuple[str, ...]
    tests: Mapping[str, int] = field(default_factory=dict)
    printed: str = ""

    @property
    def trouble(self) -> str:
        """Return the traceback of what ended it, then the end of what it printed; empty if it came to its end."""
        if self.ended is None:
            return ""
        last = self.printed.splitlines()[-_PRINTED:]
        head = f"last lines that {self.run.file} ({self.run.target}, TileLang {self.run.tilelang}) printed:"
        return "\n".join([self.ended.trace, *([head, *last] if last else [])]).strip()


def left_out_tests(ends: Iterable[End]) -> Iterator[str]:
    """Say if most tests did not run to their end: of the toolchain and arch with which the fewest did, or the last."""
    counted: dict[tuple[str, str], Counter[str]] = {}
    for end in ends:
        counted.setdefault((end.run.tilelang, end.run.target), Counter()).update(end.tests)
    left_out = {of: sum(counts[why] for why in _LEFT_OUT) for of, counts in counted.items()}
    for of in sorted(counted, key=lambda of: left_out[of])[-1:]:
        counts = counted[of]
        if 2 * left_out[of] > counts["all"] > 0:
            what = f"most tests did not run to their end with TileLang {of[0]} ({of[1]}): of {counts['all']}"
            reasons = ", ".join(f"{counts[why]} {why}" for why in _LEFT_OUT if counts[why])
            yield f"{what}, {reasons}; kernels that these compile may be missing"


@dataclass(frozen=True)
class Script:
    """A script that is run for one arch. found: in a folder, not named by the user. name: of the kernel that is
    wanted, as reports call it; empty for all.
    """

    run: Run
    found: bool
    how: Scripts
    name: str = ""

    def results(self, captured: Captured, *, kept: bool) -> list[Lowered]:
        """Return what there is to report; empty for a script that is passed over. kept: whether results are kept."""
        if captured.kernels:
            kernels = list(enumerate(captured.kernels))
            found = [self._lowered(kernel, place, kept) for place, kernel in kernels if self.name in ("", kernel.name)]
            if not found:
                return [Lowered(self.run, None, self._no_such_kernel(captured))]
            if not self._has_failed(captured):
                return found
            run = replace(self.run, position=(*self.run.position, len(captured.kernels)))
            return [*found, Lowered(run, None, captured.ended)]
        return [] if self._is_passed_over(captured) else [Lowered(self.run, None, self._problem(captured))]

    def _no_such_kernel(self, captured: Captured) -> Failure:
        names = [kernel.name for kernel in captured.kernels]
        (close,), others = get_close_matches(self.name, names, 1, 0.0), len(names) - 1
        more = f" and {_kernels_in_words(others)} more" if others else ""
        return Failure("usage", "run", f"run as a script it compiles no {self.name}, but {close}{more}")

    def uncalled(self, captured: Captured) -> tuple[str, ...]:
        """Return the kernels that a file defines and does not compile, where it compiles none."""
        is_whole = captured.ended is None and not captured.kernels and not captured.refused
        return captured.names if is_whole and not self.how.live else ()

    def end(self, captured: Captured) -> End:
        """Return how far it came."""
        remarks = tuple(self.remarks(captured))
        return End(self.run, len(captured.kernels), captured.ended, remarks, captured.tests, captured.printed)

    def remarks(self, captured: Captured) -> list[str]:
        """Return where and why it ended before its end, if nothing else says that, and what it wants to be refused."""
        head, remarks = f"{self.run.file} ({self.run.target}):", []
        if refused := captured.refused:
            remarks.append(f"{head} {_kernels_in_words(len(refused))} refused, as it expects: {', '.join(refused)}")
        if captured.names and not captured.kernels and self._is_passed_over(captured):
            names, first = ", ".join(captured.names), f"{self.run.file}::{captured.names[0]}"
            advice = f"name it with its arguments ({first} --arg NAME=VALUE), or declare a case"
            remarks.append(f"{head} defines {names}, which nothing in it compiles: {advice}")
        ended = captured.ended
        said = captured.kernels or captured.names or captured.refused or self.found
        if ended is None and self.how.keep_going and not said:
            what = "none of its tests compiles one" if is_test(Path(self.run.file)) else "nothing in it compiles one"
            remarks.append(f"{head} no kernel captured: {what}")
        if ended is None or not (captured.kernels or self._is_passed_over(captured)) or self._has_failed(captured):
            return remarks
        kernels = _kernels_in_words(len(captured.kernels)) if captured.kernels else "no kernel"
        where = f" at {near(ended.where)}" if ended.where else ""
        until = f";{where}" if is_test(Path(self.run.file)) else f" until it ended{where}:"  # other tests go on
        advice = f"; {ended.advice}" if ended.advice else ""
        return [*remarks, f"{head} {kernels} captured{until} {ended.message}{advice}"]

    def _is_passed_over(self, captured: Captured) -> bool:
        """A script without a kernel is no error in a folder, or where the user asked to keep going."""
        if captured.ended is None or captured.ended.kind == "skipped":
            return self.found or self.how.keep_going
        return self.how.keep_going and captured.ended.kind != "usage"

    def _has_failed(self, captured: Captured) -> bool:
        """Whether an early end is the script's own failure, as where everything happens for real."""
        return self.how.live and not self.how.keep_going and captured.ended is not None

    def _lowered(self, kernel: CapturedKernel, place: int, kept: bool) -> Lowered:
        position = (*self.run.position, place)
        run = replace(self.run, name=kernel.name, args=kernel.args, position=position, is_captured=True)
        digest = hashlib.sha256(kernel.snapshot.read_bytes()).hexdigest() if kernel.snapshot and kept else ""
        return Lowered(
            run,
            kernel.snapshot,
            kernel.failure,
            kernel.unsaved,
            kernel.seconds,
            digest,
            kernel.origin,
            kernel.recorded,
            inputs=kernel.inputs,
        )

    def _problem(self, captured: Captured) -> Failure:
        if captured.ended is not None:
            return captured.ended
        kernels = ", ".join(f"{self.run.file}::{name}" for name in captured.names)
        hint = f"; name a kernel: {kernels}" if kernels else ""
        hint += f" ({captured.needing})" if captured.needing else ""
        refused = f" but {_kernels_in_words(len(captured.refused))} that it expects to be refused"
        what = refused if captured.refused else ""
        return Failure("usage", "run", f"declares no case, and run as a script it compiles no kernel{what}{hint}")


def _kernels_in_words(number: int) -> str:
    return f"{number} kernel{'s' * (number != 1)}"


def is_script(selection: Selection) -> bool:
    """Whether this is run: a whole file whose code names neither `tlcheck` nor `Case`, so that it declares no case; or
    a kernel that only running it makes: those have their arguments in their names."""
    if selection.is_snapshot or (selection.name and "[" not in selection.name):
        return False
    try:
        content = selection.path.read_bytes()
        return _DECLARES.search(content) is None or not _names_cases(ast.parse(content), selection.path)
    except (OSError, SyntaxError, ValueError):
        return False


def _names_cases(tree: ast.Module, file: Path) -> bool:
    """Whether code says `tlcheck`, or a `Case` that may be tlcheck's; a comment or a text that does is none."""
    named = {name.partition(".")[0] for node in ast.walk(tree) for name in _said(node)}
    return "tlcheck" in named or ("Case" in named and not any(_is_other_case(node, file) for node in ast.walk(tree)))


def _is_other_case(node: ast.AST, file: Path) -> bool:
    """Whether a statement defines a class `Case`, or imports it from a file of the project that defines it."""
    match node:
        case ast.ClassDef(name="Case"):
            return True
        case ast.ImportFrom(module=str(module), names=names) if any(alias.name == "Case" for alias in names):
            folders = [*file.absolute().parents][node.level - 1 : node.level] if node.level else file.absolute().parents
            others = [folder.joinpath(*module.split(".")).with_suffix(".py") for folder in folders]
            return any(other.is_file() and _CLASS.search(other.read_bytes()) for other in others)
    return False


def _said(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ImportFrom(module=module, names=names):
            yield from [module or "", *(alias.name for alias in names)]
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name


def require_no_script(selections: Iterable[Selection]) -> None:
    """Raise UsageError for a script that the user named: importing it would run it, and it declares no case."""
    for selection in selections:
        if is_script(selection) and not selection.found:
            path = selection.path
            kernels = " or ".join(f"{path}::{name}" for name in _kernels_in(path) or ["NAME"])
            files = f"give the case files that `tlcheck capture {shlex.quote(str(path))} -o DIR` writes"
            raise UsageError(f"{path} declares no case: name a kernel ({kernels}), or {files}")


def _kernels_in(file: Path) -> list[str]:
    """The functions that are decorated as kernels, as far as that shows without running the file."""
    try:
        found = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError):
        return []
    functions = [node for node in found if isinstance(node, ast.FunctionDef)]
    return [f.name for f in functions if any(_MAKES_KERNEL.search(ast.unparse(d)) for d in f.decorator_list)]


def is_helper(selection: Selection) -> bool:
    """Whether this is a file of a folder that nobody would run: without a word of TileLang, or for pytest.

    Tests are run where the user names their own folder.
    """
    if not selection.found:
        return False
    path = selection.path
    if is_test(path):
        return not selection.tests
    return path.stem == "conftest" or b"tilelang" not in path.read_bytes()


def with_scripts(job: CaptureJob, how: Scripts) -> CaptureJob:
    """The job with all that it needs to know."""
    return replace(
        job,
        script_args=how.args,
        max_configs=how.max_configs,
        interpreter=sys.executable,
        live=how.live,
        record_limit=how.record_limit,
        sides=how.sides,
    )


def captured(job: CaptureJob, answer: Answer, folder: Path) -> Captured:
    """Return what the answer to the job says; snapshots are unpacked into `folder`."""
    result: Mapping[str, Any] = answer.result or {}
    kernels = tuple(_kernels(result.get("kernels", ()), result.get("calls", {}), job, folder))
    ended = result.get("ended")
    failure = Failure(**ended) if ended else answer.failure
    names, refused = (tuple(result.get(key, ())) for key in ("names", "refused"))
    printed = answer.output if failure is not None else ""
    return Captured(kernels, failure, names, refused, tests=result.get("tests", {}), printed=printed)


def handed_over(job: CaptureJob, folder: Path) -> Iterator[Lowered]:
    """The new kernels of a test file that still runs, each once. Its answer may say more of their calls."""
    for part in sorted(folder.glob(part_names(job.output))):
        with zipfile.ZipFile(part) as archive:
            result = json.loads(archive.read(RESULT))
        found = captured(replace(job, output=str(part)), Answer(result, None, 0.0, 0.0, ""), folder)
        part.unlink()
        for kernel in found.kernels:
            run = Run(job.file, kernel.name, job.arch, "", {}, kernel.args, is_captured=True)
            yield Lowered(run, kernel.snapshot, inputs=kernel.inputs)


def _kernels(found: Any, calls: Mapping[str, Any], job: CaptureJob, folder: Path) -> Iterator[CapturedKernel]:
    """calls: what `tlcheck.worker.capture.passed` says of each kernel's."""
    archive = Path(job.output)
    for fields in found:
        failure, number = fields.get("failure"), fields.get("snapshot", "")
        yield CapturedKernel(
            fields["name"],
            fields["args"],
            CapturedOrigin(**fields["origin"]) if fields["origin"] else None,
            _unpacked(archive, fields["snapshot"], folder) if "snapshot" in fields else None,
            Failure(**failure) if failure else None,
            fields.get("unsaved", {}),
            fields.get("seconds", {}),
            _recorded(archive, fields["snapshot"]) if job.record_limit and "snapshot" in fields else None,
            _passed(archive, number, calls[number], folder) if number in calls else None,
        )


def _unpacked(archive: Path, name: str, folder: Path) -> Path:
    target = folder / f"{archive.stem}-{name}.snapshot.json"
    with zipfile.ZipFile(archive) as content:
        target.write_bytes(content.read(name))
    return target


def _passed(archive: Path, name: str, calls: Mapping[str, Any], folder: Path) -> MadeInputs:
    """Return what a kernel's calls passed."""
    target = folder / f"{archive.stem}-{name}.inputs"
    with zipfile.ZipFile(archive) as content:
        target.write_bytes(content.read(f"{name}.inputs"))
    sets = tuple((number, tuple(places)) for number, (places, _) in enumerate(calls["sets"]))
    unknown = tuple(tuple(places) for _, places in calls["sets"])
    return MadeInputs(GivenInputs(str(target), sets, "", unknown=unknown, captured=True), calls["digest"])


def _recorded(archive: Path, name: str) -> RecordedCall:
    """Return what the script's process has left of a kernel's first call: see `tlcheck.worker.capture.observation`."""
    stem = f"{archive.with_suffix('')}-{name}"
    facts = Path(f"{stem}.json")
    if not facts.exists():
        return RecordedCall(missing="no call of it was seen")
    fields = json.loads(facts.read_text(encoding="utf-8"))
    if "missing" in fields:
        return RecordedCall(missing=fields["missing"])
    return RecordedCall(Path(f"{stem}.pt"), tuple(fields["updates"]), fields["size"])
