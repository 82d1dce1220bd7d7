"""Find what nvdisasm makes of machine code: how many instructions of each class a kernel has, as they stand in its
text.

CUDA Binary Utilities, "Instruction Set Reference".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)
_SECONDS = 120

# Class -> opcodes, or how they begin. The first class that has an opcode takes it.
_CLASSES: Mapping[str, tuple[str, ...]] = {
    "tensor cores": ("HGMMA", "IGMMA", "QGMMA", "BGMMA", "HMMA", "IMMA", "DMMA", "QMMA", "BMMA", "OMMA", "UTC"),
    "bulk copies": ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED"),
    "asynchronous copies": ("LDGSTS",),
    "matrix loads and stores": ("LDSM", "STSM"),
    "shared loads": ("LDS",),
    "shared stores": ("STS",),
    "spills": ("LDL", "STL"),
    "atomics": ("RED.", "REDG", "REDAS", "ATOM"),
    "global loads": ("LDG", "LD."),
    "global stores": ("STG", "ST."),
    "waits and barriers": tuple(
        "BAR SYNCS DEPBAR LDGDEPBAR MEMBAR FENCE WARPSYNC WARPGROUP NANOSLEEP ARRIVES UTMACMDFLUSH UTMACCTL".split()
    ),
    "special functions": ("MUFU",),
    "shuffles and votes": ("SHFL", "VOTE", "REDUX", "MATCH"),
    "conversions": ("F2F", "F2I", "I2F", "I2I", "F2IP", "FRND"),
    "floating point": tuple(
        "FADD FMUL FFMA FMNMX FSET FSEL FCHK HADD HMUL HFMA HMNMX HSET DADD DMUL DFMA DSET".split()
    ),
    "branches": ("BRA", "BRX", "BSSY", "BSYNC", "BREAK", "CALL", "RET", "EXIT", "JMP"),
}
_OTHERWISE = "integers, addresses and moves"


def find_disassembler(nvcc: Path) -> Path | None:
    """nvdisasm: beside nvcc, on PATH, or of a wheel in this environment; None if there is none."""
    return next((path for path in _candidates(nvcc) if os.access(path, os.X_OK)), None)


def _candidates(nvcc: Path) -> Iterator[Path]:
    yield nvcc.with_name("nvdisasm")
    if on_path := shutil.which("nvdisasm"):
        yield Path(on_path)
    for folder in sys.path:
        yield from sorted(Path(folder, "nvidia").glob("*/bin/nvdisasm"))


def opcodes(disassembler: Path, cubin: Path) -> dict[str, int]:
    """Return how often each opcode stands in machine code; empty where it cannot be read."""
    try:
        done = subprocess.run(
            [str(disassembler), "-c", str(cubin)], capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {}
    found = Counter(_INSTRUCTION.findall(done.stdout)) if done.returncode == 0 else Counter[str]()
    del found["NOP"]  # fills the text up to its end
    return dict(sorted(found.items()))


def classes(found: Mapping[str, int]) -> dict[str, int]:
    """Return how many instructions of each class there are, in the order of the classes."""
    sums: dict[str, int] = dict.fromkeys([*_CLASSES, _OTHERWISE], 0)
    for opcode, count in found.items():
        sums[class_of(opcode)] += count
    return {name: count for name, count in sums.items() if count}


def class_of(opcode: str) -> str:
    """The class of an opcode, such as `shared loads` of LDS."""
    whole = f"{opcode}."  # so that `LD.` is LD alone
    return next((name for name, starts in _CLASSES.items() if whole.startswith(starts)), _OTHERWISE)
