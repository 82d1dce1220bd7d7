"""How TileLang's own kernels fare on AMD: results/amd/census.csv.

python -m benchmarks.amd lower CHECKOUT FOLDER    run each script for both archs, and save what it compiles
python -m benchmarks.amd judge FOLDER             check each snapshot in a process of its own
python -m benchmarks.amd table FOLDER [-o FILE]   write the table of the reports that are there

Lowering needs a toolchain with einops; judging needs none, so that it may be done elsewhere. Neither does again what is
done. In copies of the scripts two spellings that 0.1.15 refuses are replaced.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.examples import SETTINGS
from tlcheck.snapshot import codec
from tlcheck.snapshot.text import render

ARCHS = ("gfx942", "gfx950")
FOLDERS = (
    "testing/python/amd",
    *(f"examples/{name}" for name in ("amd", "gemm", "gemm_fp8", "flash_attention", "norm", "online_softmax")),
    *(f"examples/{name}" for name in ("cast", "dequantize_gemm", "deepseek_mla", "deepseek_v32")),
)
SAVED = "saved"  # the folder of snapshots
LOWERING, JUDGING = 400, 480  # seconds of the clock for a script, for a kernel
# Codes of reasons why a kernel is not executed to its end.
STOPPED = frozenset(f"U{n:03}" for n in (*range(1, 16), 17, 20, 40, 41))
FILE = Path(__file__).parents[1] / "results" / "amd" / "census.csv"


class Row(NamedTuple):
    """How one kernel fares. rules: of what is refuted. codes: of what is undecided."""

    arch: str
    script: str
    kernel: str
    state: str
    executed: str
    rules: str
    codes: str
    seconds: str


def adapted(text: str) -> str:
    """Return a script in the pinned release's spelling: a target is a dictionary, `k_pack` belongs to HIP."""
    text = text.replace('"hip -mcpu=gfx950"', '{"kind": "hip", "mcpu": "gfx950"}')
    if "k_pack" in text:
        text = text.replace("import tilelang.language as T\n", "import tilelang.rocm.language as T\n")
    return text


def copied(checkout: Path, home: Path) -> list[Path]:
    """Copy the scripts into a folder, and return those that are run: no helpers of a package, no regressions."""
    scripts = []
    for folder in FOLDERS:
        for file in sorted((checkout / folder).rglob("*.py")):
            copy = home / "scripts" / file.relative_to(checkout)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(adapted(file.read_text(encoding="utf-8")), encoding="utf-8")
            if not file.name.startswith(("regression_", "__")):
                scripts.append(copy)
    return scripts


def lower(checkout: Path, home: Path, toolchain: str, jobs: int) -> None:
    """Capture the kernels of all scripts."""
    scripts = copied(checkout, home)
    (home / "pyproject.toml").write_text(SETTINGS if toolchain != "current" else "", encoding="utf-8")
    with ThreadPoolExecutor(jobs) as pool:
        for line in pool.map(lambda script: captured(script, home, toolchain), scripts):
            print(line, flush=True)


def captured(script: Path, home: Path, toolchain: str) -> str:
    """Capture a script's kernels for both archs into a folder, unless that is done, and return a line about it."""
    folder = home / SAVED / script.relative_to(home / "scripts").with_suffix("")
    done = folder / "done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tlcheck", "capture", str(script), "-o", str(folder), "--force", "-j", "1"]
        command += ["--arch", ",".join(ARCHS), "--toolchain", toolchain, "--keep-going", "--timeout", "120"]
        done.write_text(_run(command, home, folder / "log", LOWERING), encoding="utf-8")
    return f"{script.name}: {done.read_text()}, {len(list(folder.glob('*.snapshot.json')))} kernels"


def _run(command: list[str], home: Path, log: Path, limit: float) -> str:
    """Run a command, and return how it ended; one that takes too long is interrupted, so that it keeps what it has."""
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=home)
        try:
            return f"exit code {process.wait(limit)}"
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            return "stopped"


def kernels(home: Path) -> Iterator[Path]:
    """Yield one snapshot of each kernel that differs from all others of its arch, source and device TIR together."""
    seen = set()
    for file in sorted((home / SAVED).rglob("*.snapshot.json")):
        snapshot = codec.loads(file.read_text(encoding="utf-8"))
        levels = [render(snapshot.checkpoints[name]) for name in ("source", "device-tir")]
        digest = hashlib.sha256("".join(map(str, [snapshot.target, *levels])).encode()).hexdigest()
        if digest not in seen:
            yield file
        seen.add(digest)


def judged(file: Path, home: Path) -> None:
    """Check a snapshot, unless its report is there."""
    report = file.with_suffix(".report")
    begin = time.monotonic()
    if not report.exists():
        command = [sys.executable, "-m", "tlcheck", "check", str(file), "-j", "1", "--no-why"]
        command += ["--timeout", str(JUDGING), "--format", "json", "-o", str(report)]
        _run(command, home, file.with_suffix(".log"), JUDGING)
        report.with_suffix(".seconds").write_text(f"{time.monotonic() - begin:.0f}")


def row_of(file: Path, runs: Sequence[dict[str, Any]], seconds: str) -> Row:
    """Make the row of a kernel, saved as SCRIPT/FILE, from its report."""
    claims = [claim for run in runs for claim in run["claims"]]
    rules = {claim["finding"]["rule"] for claim in claims if claim["verdict"] == "refuted"}
    codes = {claim["code"] for claim in claims if claim["verdict"] == "undecided"}
    state = "refuted" if rules else "undecided" if codes else "agreed" if claims else "not judged"
    executed = bool(claims) and (bool(rules) or not codes & STOPPED)
    script, words = f"{file.parent.as_posix()}.py", (" ".join(sorted(rules)), " ".join(sorted(codes)))
    arch, name = (runs[0]["target"], runs[0]["case"].split("::")[-1]) if runs else (arch_of(file.name), file.name)
    return Row(arch, script, name, state, "yes" if executed else "no", *words, seconds)


def arch_of(name: str) -> str:
    return next((arch for arch in ARCHS if f"-{arch}-" in name), "")


def judge(home: Path, jobs: int) -> None:
    """Judge all snapshots."""
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda file: judged(file, home), kernels(home)))


def tabulate(home: Path, table: Path) -> None:
    """Write a row for each kernel that was judged, and print how many of each arch came to what."""
    rows = []
    for seconds in sorted((home / SAVED).rglob("*.seconds")):
        report = seconds.with_suffix(".report")
        runs = json.loads(report.read_text(encoding="utf-8"))["runs"] if report.exists() else []
        rows.append(row_of(report.relative_to(home / SAVED), runs, seconds.read_text()))
    tables.write(table, Row._fields, rows)
    for line in summary(rows):
        print(line)


def summary(rows: Iterable[Row]) -> Iterator[str]:
    """Say of each arch how many kernels were executed to their end, and how many came to which state."""
    for arch in ARCHS:
        mine = [row for row in rows if row.arch == arch]
        executed = sum(row.executed == "yes" for row in mine)
        states = sorted({row.state for row in mine})
        counts = ", ".join(f"{sum(row.state == state for row in mine)} {state}" for state in states)
        if mine:
            share = f"{executed} of {len(mine)} executed to the end ({executed / len(mine):.1%})"
            yield f"{arch}: {share}: {counts}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    lowering = commands.add_parser("lower")
    lowering.add_argument("checkout", type=Path)
    lowering.add_argument("--toolchain", default="pinned")
    judging, table = commands.add_parser("judge"), commands.add_parser("table")
    table.add_argument("-o", type=Path, default=FILE, dest="table")
    for command in (lowering, judging, table):
        command.add_argument("folder", type=Path)
    for command in (lowering, judging):
        command.add_argument("-j", type=int, default=os.cpu_count() or 1, dest="jobs")
    args = parser.parse_args(arguments)
    home = args.folder.resolve()
    if args.command == "lower":
        lower(args.checkout.resolve(), home, args.toolchain, args.jobs)
    elif args.command == "judge":
        judge(home, args.jobs)
    else:
        tabulate(home, args.table)


if __name__ == "__main__":
    main()
