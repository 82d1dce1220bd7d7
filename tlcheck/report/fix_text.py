"""Report what `tlcheck fix` found, for people: each change that mends a kernel, what it costs, and a line to paste."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from tlcheck.gate.verdict_outcomes import wrong_claim
from tlcheck.remedy.kernel_changes import ARGUMENT, PASS_CONFIG, RELEASE, KernelChange, keyed
from tlcheck.remedy.search import ABSENT, ALIKE, FAILS, MENDS, OPEN, WRONG, Attempt, Workarounds
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.words import plural

_KINDS = (PASS_CONFIG, ARGUMENT, RELEASE)
_OUTCOMES = {  # of one change, and of several
    MENDS: ("mends it", "mend it"),
    WRONG: ("still wrong", "still wrong"),
    OPEN: ("not decided", "not decided"),
    ALIKE: ("changes nothing", "change nothing"),
    FAILS: ("does not lower", "do not lower"),
}


def write(console: Console, results: Sequence[Result], found: Sequence[Workarounds]) -> None:
    """Every kernel that is wrong, then what there is to say of the others."""
    for each in found:
        for line in _lines(each):
            console.print(line, soft_wrap=True, highlight=False)
    wrong = {id(each.kernel.result) for each in found}
    for result in results:
        if id(result) not in wrong:
            console.print(Text(f"{_name(result)}: {_why_not(result)}"), soft_wrap=True, highlight=False)


def _lines(found: Workarounds) -> Iterator[Text]:
    result = found.kernel.result
    yield Text(f"{_name(result)}: {wrong_claim(result).words}", "bold")
    for trial in found.found:
        costs = f"; {'; '.join(trial.costs)}" if trial.costs else ""
        yield Text.assemble(f"  {trial.change.words}: ", (_verdict(trial), "green"), costs)
        yield Text(f"      {paste(trial.change, result)}", "dim")
    if not found.found:
        yield Text("  no change that was tried makes all claims agree")
    tried = "; ".join(told for kind in _KINDS if (told := _tried(kind, found.trials)))
    yield Text(f"  tried: {tried or 'nothing'}{' (interrupted)' if found.interrupted else ''}")


def _verdict(trial: Attempt) -> str:
    if trial.left:
        return f"all other claims agree; {', '.join(trial.left)}: not clean, as without it"
    return "all claims are proved" if trial.proved else "all claims agree"


def paste(change: KernelChange, result: Result) -> str:
    """The line that makes the change in the user's own code, with why it is there; configurations of its own stay."""
    why = f"# TileLang {result.run.release}: {_finding(result)} without it"
    if change.release:
        return f"tilelang=={change.release}  # {result.run.release}: {_finding(result)}"
    if change.kind == PASS_CONFIG:
        own = keyed(result.pass_configs)
        return f"@tilelang.jit(pass_configs={{{named({**own, **dict(change.variation.pass_configs)})}}})  {why}"
    return f"{', '.join(f'{name}={value}' for name, value in change.variation.args)}  {why}"


def named(configs: Mapping[str, str]) -> str:
    """Entries of a dict of pass configurations, by their keys."""
    return ", ".join(f"tilelang.PassConfigKey.{name}: {value}" for name, value in configs.items())


def _finding(result: Result) -> str:
    claim = wrong_claim(result)
    rule = claim.finding.rule if claim.finding is not None else ""
    return f"{claim.place} is wrong ({rule})"


def _tried(kind: str, trials: Sequence[Attempt]) -> str:
    """`9 pass configs (1 mends it, 6 change nothing, 2 still wrong)`."""
    own = [trial for trial in trials if trial.change.kind == kind and trial.outcome != ABSENT]
    if not own:
        return ""
    counts = Counter(trial.outcome for trial in own)
    parts = [f"{n} {words[n > 1]}" for outcome, words in _OUTCOMES.items() if (n := counts[outcome])]
    return f"{plural(len(own), kind)} ({', '.join(parts)})"


def _name(result: Result) -> str:
    return f"{result.run.case}  {result.run.target}  TileLang {result.run.tilelang}"


def _why_not(result: Result) -> str:
    """Return why nothing was tried."""
    if result.failure is not None:
        return f"not checked: {result.failure.phase}: {result.failure.message}"
    if any(claim.kind == "source" and claim.finding is not None for claim in result.claims):
        return "the finding is in the kernel itself: no change of TileLang mends it (tlcheck check)"
    return "TileLang has nothing wrong in it"
