"""Clang compiles each atomic of TileLang's device library for HIP, held against `program/hip_library.py`.

python benchmarks/hip_library.py TEMPLATES ROCM [--clang CLANG] [--arch ARCH] [-o CSV]

TEMPLATES: the folder `src` of a TileLang, with `tl_templates/hip`. ROCM: a folder with HIP's headers (`include/hip`).
One kernel for each call. What does not compile is dropped until the rest does, as probes of CUDA are.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tlcheck.probes.calls import calls
from tlcheck.probes.spelling import Dialect, kernel
from tlcheck.program.device_library import BULK, LOST, REFUSED, LibraryCall
from tlcheck.program.hip_library import behaviour

RELEASE = "0.1.15"
HEADER = "#include <hip/hip_runtime.h>\n#include <tl_templates/hip/common.h>\n"
_FIRST = HEADER.count("\n") + 1
_DIALECT = Dialect(references=False, packs=True)
_MENTIONED = re.compile(r"probe\.hip:(\d+):\d+: (?:error|note)")
_OPERATION = re.compile(r"^\s+((?:global|flat|buffer)_(?:atomic_\w+|load_\w+|store_\w+)|buffer_(?:inv|wbl2)|ds_\w+)")
_ORDERING = ("buffer_inv", "buffer_wbl2")  # what an acquire and a release at the scope of a device are


class Compiler:
    """clang for one arch."""

    def __init__(self, command: str, arch: str, templates: Path, rocm: Path, extra: Sequence[str]) -> None:
        target = ["-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", f"--rocm-path={rocm}", "-nogpulib"]
        options = ["-std=c++17", "-O3", "-w", "-ferror-limit=0", "-S", *extra, "-I", str(templates), "-o", "-"]
        self._command = [*command.split(), *target, *options]

    def compiled(self, probed: Sequence[LibraryCall]) -> dict[LibraryCall, tuple[str, ...]]:
        """The memory instructions of each call; calls that do not compile are not in it."""
        left = list(probed)
        while True:
            done, errors = self._run(HEADER + "".join(kernel(i, c, _DIALECT) + "\n" for i, c in enumerate(left)))
            if done is not None:
                return {call: tuple(_instructions(done, i)) for i, call in enumerate(left)}
            wrong = {int(line) - _FIRST for line in _MENTIONED.findall(errors)}
            if not wrong & set(range(len(left))):
                sys.exit(f"error: {errors[:2000]}")
            left = [call for i, call in enumerate(left) if i not in wrong]

    def _run(self, text: str) -> tuple[str | None, str]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "probe.hip"
            file.write_text(text, encoding="utf-8")
            done = subprocess.run([*self._command, str(file)], capture_output=True, text=True, check=False)
        return (done.stdout if done.returncode == 0 else None), done.stderr


def _instructions(assembly: str, number: int) -> Iterator[str]:
    """The different memory instructions of a kernel, in order."""
    body = assembly.split(f"\np{number}:", 1)[1].split(".Lfunc_end", 1)[0]
    yield from dict.fromkeys(found[1] for line in body.splitlines() if (found := _OPERATION.match(line)))


def judged(call: LibraryCall, made: tuple[str, ...] | None) -> str:
    """`agree`, `unknown` where tlcheck says nothing, or what differs."""
    said = behaviour(RELEASE, call)
    if said is None:
        return "unknown"
    if (made is None) != (said.verdict == REFUSED):
        return "compiles" if made is not None else "does not compile"
    if made is None:
        return "agree"
    ordered = any(found in _ORDERING for found in made)
    if said.verdict == LOST and ordered:
        return "has an order"
    named = [name for name in said.instructions if not name.startswith("__hip")]
    missing = [name for name in named if name not in made and not _is_a_loop(name, made)]
    return f"no {missing[0]}" if missing else "agree"


def _is_a_loop(name: str, made: tuple[str, ...]) -> bool:
    """Whether a maximum or minimum of floats in LDS became compare-and-swaps: that hangs on the release of ROCm."""
    return re.fullmatch(r"ds_(max|min)_f\d+", name) is not None and any("cmpst" in found for found in made)


def main() -> int:
    """Compile all calls, write the table, and say how many agree. Returns 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("templates", type=Path, metavar="TEMPLATES")
    parser.add_argument("rocm", type=Path, metavar="ROCM")
    parser.add_argument("--clang", default="clang++-19", help="command, with options of its own (clang++-19)")
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--option", action="append", default=[], help="one more option for clang, such as -I/folder")
    parser.add_argument("-o", "--output", type=Path, metavar="CSV")
    asked = parser.parse_args()
    probed = [call for call in calls() if call.operation not in BULK]
    made = Compiler(asked.clang, asked.arch, asked.templates, asked.rocm, asked.option).compiled(probed)
    counts: dict[str, int] = {}
    rows = []
    for call in probed:
        found = judged(call, made.get(call))
        counts[found] = counts.get(found, 0) + 1
        rows.append([str(call), " ".join(made[call]) if call in made else "does not compile", found])
    if asked.output is not None:
        with asked.output.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([["call", asked.arch, "tlcheck"], *rows])
    print(f"{asked.arch}: {len(probed)} calls, {len(made)} compile;", dict(sorted(counts.items())))
    return 0 if set(counts) <= {"agree", "unknown"} else 1


if __name__ == "__main__":
    sys.exit(main())
