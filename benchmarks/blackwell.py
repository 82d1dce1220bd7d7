"""How TileLang's own kernels for sm_100 fare: results/blackwell/RELEASE.csv, by `python -m benchmarks.blackwell`.

`capture CHECKOUT FOLDER --toolchain R [-j N]` lowers what its scripts and tests compile, and notes what that costs the
processor. `judge FOLDER FILE.csv [-j N] [--limit S]` judges the snapshots that are there, each in a process that is
forked when all is imported; it needs neither TileLang nor a network. What the file has is not judged again: lines that
are deleted are. `sum FILE.csv...` adds up, and lists what does not agree by what is said of it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from benchmarks import tables

FOLDERS = "gemm_tcgen05 gemm_sm100 flash_attention_sm100 blockscaled_gemm_sm100 deepseek_v4".split()
WORDS = "tcgen05 tcgen5 tmem cluster dsmem multicast gather nvfp4 nvf4 clc blockscale".split()
LIMIT = "limit"  # state of a kernel that took too long
LOWERED = "lowered"  # state of the row of a script: what lowering all its kernels took


class Row(NamedTuple):
    """How a kernel fares. rules: of what is refuted; codes: of what is undecided; words: on both.

    seconds: of the processor.
    """

    script: str
    kernel: str
    state: str
    rules: str
    codes: str
    words: str
    seconds: str


def scripts(checkout: Path) -> list[Path]:
    """The scripts and tests, by their names; those that are for sm_120 alone are in the list of other measurements."""
    found = [path for folder in FOLDERS for path in sorted((checkout / "examples" / folder).glob("*.py"))]
    found += sorted((checkout / "examples/gemm_fp8").glob("*sm100*.py"))
    found += sorted((checkout / "maint/gemm").glob("*tcgen05*.py"))
    tests = sorted((checkout / "testing").rglob("*.py"))
    return found + [path for path in tests if any(word in path.name for word in WORDS)]


def capture(checkout: Path, folder: Path, release: str, arch: str, jobs: int) -> None:
    """Lower what the scripts compile; a folder for each, with its log and the seconds of the processor."""
    left = [script for script in scripts(checkout) if not (folder / script.stem / "seconds").exists()]
    with ThreadPoolExecutor(jobs) as pool:
        for text in pool.map(lambda script: _captured(checkout, script, folder / script.stem, release, arch), left):
            print(text, flush=True)


def _captured(checkout: Path, script: Path, into: Path, release: str, arch: str) -> str:
    into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tlcheck", "capture", str(script.relative_to(checkout)), "-o", str(into)]
    command += ["--arch", arch, "--toolchain", release, "--keep-going", "--force", "--no-cache", "--jobs", "1"]
    with (into / "log").open("w", encoding="utf-8") as log:
        done = subprocess.Popen(command, cwd=checkout, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    _, status, used = os.wait4(done.pid, 0)  # of this process and of those that it waited for
    done.returncode = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    (into / "seconds").write_text(f"{seconds:.1f}\n", encoding="utf-8")
    return f"{script.stem}: {len(list(into.glob('*.snapshot.json')))} kernels, {seconds:.1f} s"


def judge(folder: Path, file: Path, jobs: int, limit: float) -> None:
    """Judge the snapshots of a folder that the file has no row for; the largest first."""
    rows = tables.read(file, Row)
    rows |= {Row(p.parent.name, "", LOWERED, "", "", "", p.read_text().strip()) for p in folder.glob("*/seconds")}
    known = {(row.script, row.kernel) for row in rows}
    left = [p for p in folder.glob("*/*.snapshot.json") if (p.parent.name, _kernel(p)) not in known]
    left.sort(key=lambda p: -p.stat().st_size)
    _imported()
    with ThreadPoolExecutor(jobs) as pool:
        for number, done in enumerate(as_completed([pool.submit(_judged, path, limit) for path in left]), 1):
            row = done.result()
            rows.add(row)
            tables.write(file, Row._fields, rows)
            print(f"{number} of {len(left)}: {' '.join(row)}", flush=True)
    print("\n".join(summary(rows)))


def _kernel(path: Path) -> str:
    return path.name.removesuffix(".snapshot.json")


def _imported() -> None:
    """Import what a judging process does, once for all that are forked: NumPy with one thread, as tlcheck has it."""
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    import tlcheck.execute.compare.both_levels
    import tlcheck.execute.compare.diagnosis
    import tlcheck.execute.compare.executions
    import tlcheck.verdicts.execution_claims
    import tlcheck.verdicts.judging  # noqa: F401


def _judged(path: Path, limit: float) -> Row:
    """Judge a snapshot in a process of its own, which ends after `limit` seconds of the processor."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(path, theirs, limit))
    child.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = "died", "", "", "", ""
    child.join()
    if child.exitcode == -signal.SIGXCPU:
        found = LIMIT, "", "", "", f"{limit:.0f}"
    return Row(path.parent.name, _kernel(path), *found)


def _child(path: Path, told: multiprocessing.connection.Connection, limit: float) -> None:
    from tlcheck.execute.request import Request
    from tlcheck.snapshot import codec
    from tlcheck.verdicts.judging import verdicts_of, with_inputs_of

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
    sys.setrecursionlimit(20_000)
    begun = time.process_time()
    snapshot = codec.loads(path.read_text(encoding="utf-8"))
    found = verdicts_of(snapshot, with_inputs_of(Request(), snapshot))
    claims = [one for claim in found.claims for one in (claim, *claim.also) if one.counts_as != "warning"]
    refuted = [claim.finding for claim in claims if claim.verdict == "refuted" and claim.finding]
    undecided = [claim for claim in found.claims if claim.verdict == "undecided"]
    rules, codes = sorted({finding.rule for finding in refuted}), sorted({claim.code for claim in undecided})
    words = {f"{finding.rule} {finding.what}" for finding in refuted}
    words |= {f"{claim.code} {claim.reason}" for claim in undecided}
    if found.failure:
        words.add(found.failure.message)
    state = "failure" if found.failure else "refuted" if rules else "undecided" if codes else "agreed"
    told.send((state, " ".join(rules), " ".join(codes), "; ".join(sorted(words)), f"{time.process_time() - begun:.1f}"))


def summary(rows: Iterable[Row]) -> Iterator[str]:
    """Count the kernels of a table by their states, and add up its seconds."""
    every = [row for row in rows if row.state != LOWERED]
    lowering = sum(float(row.seconds) for row in rows if row.state == LOWERED)
    counts, judging = Counter(row.state for row in every), sum(float(row.seconds or 0) for row in every)
    ended = counts["agreed"] + counts["refuted"]
    yield f"{len(every)} kernels: {', '.join(f'{count} {state}' for state, count in counts.most_common())}"
    yield f"to the end: {ended / max(1, len(every)):.1%}"
    yield f"lowering {lowering:.0f} s, judging {judging:.0f} s: {judging / max(1, lowering):.2f}"
    for row in sorted(every, key=lambda row: -float(row.seconds or 0))[:8]:
        yield f"  {row.seconds:>6} s  {row.script} {row.kernel[:60]}"


def forms(rows: Iterable[Row]) -> Iterator[str]:
    """Group what is refuted, undecided or not ended by what is said of it without its numbers, with the kernels."""
    alike: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows):
        if row.state not in ("agreed", LOWERED):
            said = re.sub(r"(?<![A-Z0-9])\d+", "N", "; ".join(dict.fromkeys(row.words.split("; "))))
            alike.setdefault((row.state, said), []).append(row.kernel)
    for (state, said), kernels in sorted(alike.items(), key=lambda item: (item[0][0], -len(item[1]))):
        yield f"{len(kernels)} {state}: {said}"
        yield f"    {', '.join(kernels)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("capture")
    one.add_argument("checkout", type=Path)
    one.add_argument("folder", type=Path)
    one.add_argument("--toolchain", required=True)
    one.add_argument("--arch", default="sm_100")
    one.add_argument("-j", type=int, default=1)
    one = commands.add_parser("judge")
    one.add_argument("folder", type=Path)
    one.add_argument("file", type=Path)
    one.add_argument("-j", type=int, default=1)
    one.add_argument("--limit", type=float, default=1200)
    one = commands.add_parser("sum")
    one.add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    if args.command == "capture":
        capture(args.checkout.resolve(), args.folder.resolve(), args.toolchain, args.arch, args.j)
    elif args.command == "judge":
        judge(args.folder.resolve(), args.file, args.j, args.limit)
    else:
        for file in args.files:
            rows = tables.read(file, Row)
            print(file, *summary(rows), *forms(rows), sep="\n")


if __name__ == "__main__":
    main()
