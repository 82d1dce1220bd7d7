"""How small `tlcheck reduce` makes the kernels of tests/wrong_code/grown.

    python benchmarks/reductions.py results/reductions.csv FOLDER [--jobs N] [CASE...]

One line for each case, N cases at a time (default: one per processor). The same command goes on where it was: lines of
the same commit are kept, others are replaced. The small kernels go to FOLDER. `seconds` are of all processors; answers
of earlier runs are not used. `same pass`: whether it is one of those in tests/wrong_code/origins.toml, which were found
by hand, or the one of its page in docs/findings. `finding` of a case without `after` is why it was not reduced.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tomllib

from tlcheck.remedy.reduction import needed

ROOT = Path(__file__).parents[1]
GROWN = Path("tests/wrong_code/grown")
# What each kernel has grown around, and the newest release that has it wrong.
KERNELS = {
    "wait": ("models", "gated_mlp", "0.1.9", "sm_80"),
    "loop": ("rows", "special_tokens", "0.1.15", "sm_80"),
    "store": ("tiles", "broadcast_state", "0.1.7.post3", "sm_80"),
    "sums": ("rows", "gated_sums", "0.1.13", "sm_80"),
    "pairs": ("tiles", "paired_lanes", "0.1.7.post3", "sm_80"),
    "counts": ("tiles", "expert_counts", "0.1.7.post3", "sm_80"),
    "reused": ("pipelines", "two_queries", "0.1.15", "sm_90"),
    "empty": ("pipelines", "causal_blocks", "0.1.15", "sm_90"),
    "scaled": ("pipelines", "scaled_queries", "0.1.15", "sm_90"),
    "skipped": ("pipelines", "optional_experts", "0.1.15", "sm_90"),
    "nested": ("models", "chunk_scan", "0.1.15", "sm_90"),
    "repeated": ("tiles", "while_rotated", "0.1.15", "sm_80"),
    "table": ("pipelines", "positional_table", "0.1.15", "sm_90"),
    "drained": ("pipelines", "unaligned_product", "0.1.15", "sm_90"),
    "reloaded": ("pipelines", "sparse_loads", "0.1.15", "sm_80"),
    "moved": ("pipelines", "stepping_rows", "0.1.15", "sm_80"),
    "replaced": ("pipelines", "prefetched_rows", "0.1.15", "sm_80"),
    "turns": ("tiles", "taking_turns", "0.1.15", "sm_80"),
    "filled": ("tiles", "padded_window", "0.1.15", "sm_80"),
    "operand": ("pipelines", "kept_operand", "0.1.15", "sm_80"),
    "claimed": ("rows", "compacted_rows", "0.1.12", "sm_80"),
    "grouped": ("sums", "group_statistics", "0.1.12", "sm_80"),
    "merged": ("rows", "asked_counts", "0.1.12", "sm_80"),
    "uncovered": ("sums", "head_scores", "0.1.12", "sm_80"),
    "rows": ("pipelines", "wide_product", "0.1.12", "sm_90"),
    "counted": ("sums", "weighted_total", "0.1.13", "sm_80"),
    "safe": ("tiles", "padded_tiles", "0.1.12", "sm_80"),
    "lower": ("tiles", "running_rows", "0.1.12", "sm_80"),
    "narrow": ("tiles", "running_rows", "0.1.12", "sm_80"),
    "mixed": ("models", "embedding_grad", "0.1.11", "sm_80"),
    "aliased": ("models", "staged_norm", "0.1.10", "sm_80"),
    "lookup": ("models", "codebook_norm", "0.1.13", "sm_80"),
    "neighbour": ("rows", "rotated_features", "0.1.13", "sm_80"),
    "widened": ("rows", "pixel_steps", "0.1.15", "sm_80"),
    "scanned": ("tiles", "running_columns", "0.1.10", "sm_80"),
    "sometimes": ("tiles", "optional_steps", "0.1.15", "sm_80"),
    "misplaced": ("pipelines", "short_windows", "0.1.15", "sm_90"),
    "batched": ("sums", "row_sums", "0.1.15", "sm_80"),
    "unreduced": ("sums", "small_matrix", "0.1.15", "sm_80"),
    "halved": ("rows", "best_keys", "0.1.12", "sm_80"),
    "signed": ("tiles", "padding_codes", "0.1.11", "sm_80"),
    "joined": ("experts", "routed_gate_up", "0.1.15", "sm_90"),
    "overrun": ("attention", "biased_attention", "0.1.15", "sm_90"),
    "unscanned": ("scans", "chunk_gates", "0.1.15", "sm_90"),
    "parted": ("attention", "sink_scores", "0.1.15", "sm_90"),
    "begun": ("scans", "radix_select", "0.1.15", "sm_80"),
    "reinterpreted": ("experts", "dispatch_counts", "0.1.15", "sm_90"),
    "converted": ("scans", "packed_row_sums", "0.1.15", "sm_80"),
    "either": ("experts", "multimodal_embedding_grad", "0.1.15", "sm_80"),
    "negative": ("attention", "projected_rope", "0.1.15", "sm_90"),
    "asked": ("attention", "decode_merge", "0.1.15", "sm_80"),
    "overwritten": ("scans", "chunk_state", "0.1.15", "sm_80"),
}
ARGUMENTS = {"narrow": ("first=0", "summed_columns=40")}
COLUMNS = (
    *("case", "kernel", "arch", "release", "before", "after", "seconds", "finding", "pass", "same pass", "right in"),
    *("date", "commit"),
)
_FIRST = re.compile(r"# TileLang [^,]+, (?:(?P<pass>[^:]+), )?sm_\d+: (?P<rule>\w+) at (?P<buffer>[\w?]+)")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", default=[*KERNELS], metavar="CASE")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_intermixed_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    rows = {row["case"]: row for row in csv.DictReader(args.output.open())} if args.output.exists() else {}
    wanted = [case for case in args.cases if rows.get(case, {}).get("commit") != commit]
    with ThreadPoolExecutor(args.jobs) as threads:
        for done in as_completed([threads.submit(_reduced, case, folder / f"{case}.py", commit) for case in wanted]):
            row = done.result()
            rows[str(row["case"])] = row
            _write(args.output, rows)
            print(*(f"{value}" for value in row.values()), sep="  ", flush=True)
    return 0


def _write(output: Path, rows: dict[str, dict[str, Any]]) -> None:
    """Write all lines, in the order of the cases."""
    with output.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows[case] for case in KERNELS if case in rows)


def _reduced(case: str, small: Path, commit: str) -> dict[str, Any]:
    module, name, release, arch = KERNELS[case]
    file = GROWN / f"{module}.py"
    row: dict[str, Any] = {"case": case, "kernel": name, "arch": arch, "release": release}
    row |= {"before": _lines((ROOT / file).read_text(), name), "commit": commit}
    row["date"] = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    given = [word for argument in ARGUMENTS.get(case, ()) for word in ("--arg", argument)]
    command = [sys.executable, "-m", "tlcheck", "reduce", f"{file}::{name}", *given, "--toolchain", release]
    command += ["--arch", arch, "-q", "-j1", "--seconds", "3000", "-o", str(small)]
    with small.with_suffix(".log").open("w") as log:
        environment = {**os.environ, "TLCHECK_NO_CACHE": "1"}
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    row["seconds"] = round(usage.ru_utime + usage.ru_stime)
    if process.returncode == 0:
        return row | _told(case, arch, small.read_text())
    return row | {"finding": small.with_suffix(".log").read_text()[-200:].strip()}


def _told(case: str, arch: str, text: str) -> dict[str, Any]:
    """Return what the comments of a small kernel say of it."""
    first, lines = _FIRST.search(text), re.search(r"\d+ -> (\d+) lines", text)
    right = re.search(r"right (?:\(agreed\) )?in ([^;\n]+)", text)
    assert first
    assert lines
    guilty = [name.replace("none", "the code generator") for name in _guilty(case, arch)]
    found = first["pass"] or ""
    return {
        "after": lines[1],
        "finding": f"{first['rule']} at {first['buffer']}",
        "pass": found,
        "same pass": "yes" if found.partition(" (")[0] in guilty else "no",
        "right in": right[1] if right else "",
    }


def _guilty(case: str, arch: str) -> list[str]:
    """The passes of which one is to blame: read in the TIR, else as the finding's page says."""
    origins = tomllib.loads((ROOT / "tests/wrong_code/origins.toml").read_text())
    if case in origins:
        return [str(name) for name in origins[case][arch]["guilty"]]
    pages = [page.read_text() for page in sorted((ROOT / "docs/findings").glob("[0-9]*.md"))]
    (page,) = [page for page in pages if re.search(rf'^cases = .*"{case}"', page, re.MULTILINE)]
    return re.findall(r"`([\w.]+)`", page.partition("\nguilty = ")[2].partition("\n")[0]) or ["none"]


def _lines(text: str, name: str) -> int:
    """The lines of a kernel, and of what it needs of its file, without comments and empty ones."""
    tree, rows = ast.parse(text), text.splitlines()
    own = [row for stmt in needed(tree, name) for row in rows[_first_line(stmt) - 1 : stmt.end_lineno]]
    return sum(1 for row in own if row.strip() and not row.strip().startswith("#"))


def _first_line(stmt: ast.stmt) -> int:
    return min([stmt.lineno, *(d.lineno for d in getattr(stmt, "decorator_list", ()))])


if __name__ == "__main__":
    raise SystemExit(main())
