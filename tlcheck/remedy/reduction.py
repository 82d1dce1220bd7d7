"""The smallest kernel with a finding: delta debugging over the edits of its Python source.

A step tries many edits of one kind at once, then halves of them, and keeps every text that still shows the finding.
Steps are repeated until none of them makes the text smaller, or the time is over.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from tlcheck.remedy import python_edits as edits
from tlcheck.remedy.python_bounds import leaving
from tlcheck.remedy.python_buffers import ambiguous, dangling, read_first, without_dangling, without_output
from tlcheck.remedy.python_edits import Edits
from tlcheck.remedy.python_folding import bind, fold, without_parameters
from tlcheck.remedy.python_macros import inline
from tlcheck.remedy.python_merging import copies, factors
from tlcheck.remedy.python_slicing import slices
from tlcheck.remedy.reduction_trials import Benches

_WIDTH = 120  # of a line, where a function's parameters fit
_HALVABLE: Mapping[str, Edits] = {
    "names": edits.names,
    "statements": edits.statements,
    "loops and conditions": edits.wrappers,
    "copies": copies,
    "factors": factors,
    "keywords": edits.keywords,
    "axes of the grid": edits.grids,
    "axes of buffers": edits.axes,
    "expressions": edits.operands("first"),
    "other expressions": edits.operands("last"),
    "plain loops": edits.sequences,
}

_COARSE = ("defaults", "names", "statements", "loops and conditions")


@dataclass
class KernelReduction:
    """A record of how far a kernel is reduced. best: the smallest text until now. steps: those before it, the first one
    first.

    seconds: of wall-clock time, from `begin` on. pass_name: to blame for the finding, empty where that is not known.
    buffers: that the finding is about. told: hears what is tried, and how many lines are left. dangling: buffers of the
    first text that nobody sets or reads, that are read first, that indices leave, or with an element of several values.
    careful: whether the passes are looked at after each kind of edit, not each round.
    """

    benches: Benches
    seconds: float
    pass_name: str = ""
    buffers: Sequence[str] = ()
    best: str = ""
    steps: list[str] = field(default_factory=list)
    dangling: set[str] = field(default_factory=set)
    careful: bool = False
    stopped: Callable[[], bool] = lambda: False
    told: Callable[[str, int], None] = lambda what, lines: None
    _begun: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the user has ended it, or the time has."""
        return self.stopped() or time.monotonic() - self._begun > self.seconds

    def begin(self, text: str) -> bool:
        """Take the first text that shows the finding. Return False where it does not.

        What the finding depends on comes first: large kernels take long to lower and to execute.
        """
        self._begun, self.dangling = time.monotonic(), _unset(text) | _left(text)
        if not self._begin_small(text) and not self.benches.shows(text):
            return False
        self._keep(self.best or text)
        return True

    def _begin_small(self, text: str) -> bool:
        """Look for a part of the text that shows the finding, by the same pass."""
        tree = ast.parse(text)
        inline(tree)
        edits.drop_asserts(tree)
        inlined = written(tree)
        for each in self._slices(inlined):
            if each != inlined and is_sound(each) and self._is_whole(each) and self.benches.shows(each):
                if self._blames_the_pass(each):
                    self.best = each
                return bool(self.best)
        return False

    def run(self, builder: str) -> None:
        """Reduce until nothing helps."""
        with ThreadPoolExecutor(self.benches.count) as threads:
            self._threads = threads
            self._round("macros", "slices", *_COARSE)
            self._first("the builder's parameters", self._folded(builder))
            while self._round(*_HALVABLE, "constants", "numbers", "dtypes"):
                pass

    def _round(self, *kinds: str) -> bool:
        """Try each kind of edit. Return whether one has helped, and there is time for another round."""
        before, first = self.best, len(self.steps)
        for kind in kinds:
            begin = len(self.steps)
            self._try(kind)
            if self.careful:
                self._keep_the_pass(begin)
        if not self.careful and len(self.steps) > first and not self._blames_the_pass():
            self.careful = True
            self._go_back(first)
            return self._round(*kinds)
        return self.best != before and not self.is_over

    def _try(self, kind: str) -> None:
        """Try all edits of a kind."""
        if kind in _HALVABLE:
            self._halves(kind)
        elif kind in ("defaults", "numbers"):
            self._numbers(edits.default_places if kind == "defaults" else edits.number_places)
        elif kind == "dtypes":
            while self._first(kind, self._changed(edits.dtype_changes)):
                pass
        elif kind == "slices":
            self._first("statements that it does not depend on", self._slices(self.best))
        else:
            change = {"macros": inline, "constants": fold}[kind]
            self._first(kind, self._changed(lambda tree: iter([lambda: change(tree)])))

    def _blames_the_pass(self, text: str = "") -> bool:
        return not self.pass_name or self.benches.blames(text or self.best, self.pass_name)

    def _go_back(self, step: int) -> None:
        del self.steps[step:]
        self.best = self.steps[-1]

    def _keep_the_pass(self, begin: int) -> None:
        """Go back to the last step for which the same pass is to blame: a smaller one may show another bug.

        begin: the number of steps of which that is known.
        """
        same, other = begin, len(self.steps)
        if same == other or self._blames_the_pass():
            return
        while other - same > 1:
            middle = (same + other) // 2
            if self.benches.blames(self.steps[middle - 1], self.pass_name):
                same = middle
            else:
                other = middle
        self._go_back(same)

    def _slices(self, text: str) -> Iterator[str]:
        """Yield what the buffers of the finding depend on, alone."""
        for names in slices(ast.parse(text), self.buffers):
            tree = ast.parse(text)
            edits.drop_names(tree, names)
            without_dangling(tree, self.dangling)
            yield written(tree)

    def _numbers(self, places: Callable[[ast.Module], Sequence[str | int]]) -> None:
        """Try smaller numbers in the place of each, once. Smaller shapes are quicker to execute."""
        for place in places(ast.parse(self.best)):
            self._first("numbers", self._changed(lambda tree, place=place: edits.number_changes(tree, place)))  # type: ignore[misc]

    def _halves(self, kind: str) -> None:
        """Try all edits of a kind, then halves, quarters and so on of them, the last ones first."""
        size = count = len(_HALVABLE[kind](ast.parse(self.best)))
        while size:
            end = count
            while end > 0 and not self.is_over:
                chunk = range(max(0, end - size), end)
                if self._first(kind, iter([self._edited(kind, chunk)])):
                    now = len(_HALVABLE[kind](ast.parse(self.best)))
                    end, count = min(end - size, now) if now >= count - size else min(end, now), now
                else:
                    end -= size
            size = min(size // 2, count)

    def _edited(self, kind: str, chunk: Iterable[int]) -> str:
        tree = ast.parse(self.best)
        found = _HALVABLE[kind](tree)
        for number in chunk:
            if number < len(found):
                found[number]()
        without_dangling(tree, self.dangling)
        return written(tree)

    def _changed(self, changes: Callable[[ast.Module], Iterator[edits.Edit]]) -> Iterator[str]:
        """Each change alone, made in a tree of its own."""
        for number in range(sum(1 for _ in changes(ast.parse(self.best)))):
            tree = ast.parse(self.best)
            next(islice(changes(tree), number, None))()
            yield written(tree)

    def _folded(self, builder: str) -> Iterator[str]:
        tree = ast.parse(self.best)
        without_parameters(tree, next(f for f in edits.nodes(tree, ast.FunctionDef) if f.name == builder))
        yield written(tree)

    def _first(self, what: str, texts: Iterator[str]) -> bool:
        """Keep the first text that shows the finding; as many are tried at once as there are benches."""
        base = self.best
        hopeful = (text for text in texts if text != base and is_sound(text) and self._is_whole(text))
        while not self.is_over:
            some = list(islice(hopeful, self.benches.count))
            if not some:
                return False
            self.told(what, lines_of(self.best))
            answers = list(self._threads.map(self.benches.shows, some))
            good = [text for text, answer in zip(some, answers, strict=True) if answer]
            if good:
                self._keep(good[0])
                return True
        return False

    def _is_whole(self, text: str) -> bool:
        """Whether every buffer is set before it is read, and read, and no index leaves it, as in the first text."""
        return not _unset(text) - self.dangling

    def _keep(self, text: str) -> None:
        self.best = text
        self.steps.append(text)


def _unset(text: str) -> set[str]:
    tree = ast.parse(text)
    return dangling(tree) | read_first(tree) | without_output(tree) | leaving(tree) | ambiguous(tree)


def _left(text: str) -> set[str]:
    """The buffers that indices leave, for the builder's defaults. Others may have arguments without."""
    tree = ast.parse(text)
    inline(tree)
    for function in [stmt for stmt in tree.body if isinstance(stmt, ast.FunctionDef)]:
        is_builder = any(isinstance(stmt, ast.FunctionDef) for stmt in function.body)
        if is_builder and len(function.args.args) == len(function.args.defaults):
            without_parameters(tree, function)
    return leaving(tree)


def bound(text: str, builder: str, args: Mapping[str, str]) -> str:
    """Return a kernel file's text with one kernel alone, its arguments in it. Raises ValueError."""
    tree = ast.parse(text)
    found = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == builder]
    if not found:
        raise ValueError(f"no function at the top of the file is {builder}, or alone makes it: name one, FILE::NAME")
    bind(found[0], args)
    tree.body = needed(tree, builder)
    return written(tree)


def needed(tree: ast.Module, builder: str) -> list[ast.stmt]:
    """Return what a function needs of its file, with the function itself."""
    names = _needed_names(tree, builder)
    return [s for s in tree.body if _binds(s) & names or isinstance(s, (ast.Import, ast.ImportFrom))]


def written(tree: ast.Module) -> str:
    """Return a tidy text of a tree, without names that nobody reads; long lists of parameters are in rows."""
    ast.fix_missing_locations(tree)
    edits.tidy(tree)
    for function in edits.nodes(tree, ast.FunctionDef):
        function.returns = None
    return "\n".join(_folded_line(line) for line in ast.unparse(tree).splitlines()) + "\n"


def is_sound(text: str) -> bool:
    """Return whether a text is Python, reads no name that it does not bind, and no part of a buffer that is empty."""
    try:
        compile(text, "kernel.py", "exec")
    except (SyntaxError, ValueError):
        return False
    tree = ast.parse(text)
    return not edits.undefined(tree) and not any(map(_is_nothing, edits.nodes(tree, ast.Slice)))


def _is_nothing(part: ast.Slice) -> bool:
    match part:
        case ast.Slice(ast.Constant(int(lower)), ast.Constant(int(upper))):
            return lower >= upper
    return False


def lines_of(text: str) -> int:
    """Return the number of lines that hold something."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _folded_line(line: str) -> str:
    if len(line) <= _WIDTH or not line.lstrip().startswith("def "):
        return line
    function = ast.parse(f"{line.strip()} pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    indent = " " * (len(line) - len(line.lstrip()))
    rows = [f"{indent}def {function.name}("]
    rows += [f"{indent}    {row}" for row in _packed([f"{ast.unparse(arg)}," for arg in function.args.args])]
    return "\n".join([*rows, f"{indent}):"]) if not function.args.defaults else line


def _packed(words: Iterable[str]) -> list[str]:
    """Words in as few rows as hold them."""
    rows = [""]
    for word in words:
        fits = len(rows[-1]) + len(word) < _WIDTH - 12
        rows[-1:] = [f"{rows[-1]} {word}".strip()] if fits else [rows[-1], word]
    return rows


def _binds(stmt: ast.stmt) -> set[str]:
    """The names that a statement at the top binds."""
    if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
        return {stmt.name}
    return {n.id for n in edits.nodes(stmt, ast.Name) if isinstance(n.ctx, ast.Store)}


def _needed_names(tree: ast.Module, name: str) -> set[str]:
    """A function's name, the names that it reads, and those that these read."""
    found, waiting = set[str](), {name}
    while waiting:
        found |= waiting
        own = [s for s in tree.body if _binds(s) & waiting]
        waiting = {n.id for s in own for n in edits.nodes(s, ast.Name) if isinstance(n.ctx, ast.Load)} - found
    return found
