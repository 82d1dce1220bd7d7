"""Runs `adds.py` on a GPU and says what each call of the device library did: `python adds_record.py OUT.json`.

Needs TileLang (whichever is on PYTHONPATH), torch, nvcc and a GPU in this interpreter, and no network. Each kernel has
a process of its own, since one that stops takes its CUDA context along.

OUT.json: case -> what was seen: `right`; `wrong` with how many elements and the first; `does not compile` or `stops`
with the first line of the error that says it. `atomics`: opcodes of the machine code that add and order.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEED = 20261122
AT_ONCE, PATIENCE = 12, 150  # processes; seconds for one kernel
_COMPILER = re.compile(r"nvcc|ptxas|[Cc]ompil|error:")
_OPCODE = re.compile(  # of machine code, or of PTX where nothing reads that
    r"^(?:\s*/\*[0-9a-f]{4}\*/)?\s*(?:@!?[%\w]+ )?"
    r"((?:ATOM\w*|RED\w*|UBLKRED|UTMAREDG|MEMBAR|CCTL|ERRBAR|atom|red|fence|cp\.reduce)(?:\.[\w.:]+)?)(?=[\s;])"
)


def main(out: str) -> None:
    """Run every case and write what was seen."""
    names = re.findall(r"^(\w+) = case\(", (HERE / "adds.py").read_text(), re.MULTILINE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        seen = dict(zip(names, pool.map(_in_a_process, names), strict=True))
    for name, found in seen.items():
        print(f"{name:32} {found['seen']}  {found.get('first', '')}")
    report = {"about": _machine(), "command": "python tests/hardware/adds_record.py OUT.json", "cases": seen}
    Path(out).write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")


def _in_a_process(name: str) -> dict[str, Any]:
    command, env = [sys.executable, __file__, "--case", name], {**os.environ, "TILELANG_DISABLE_CACHE": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=env)
    except subprocess.TimeoutExpired:
        return {"seen": "stops", "first": f"no answer in {PATIENCE} seconds"}
    answers = [line for line in done.stdout.splitlines() if line.startswith('{"seen"')]
    if answers:
        return dict(json.loads(answers[-1]))
    return {"seen": "stops", "first": f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"}


def _one(name: str) -> dict[str, Any]:
    """Return what one case does."""
    sys.path.insert(0, str(ROOT))
    import tests.hardware.adds as adds

    case = getattr(adds, name)
    try:
        kernel = case.kernel(**case.args)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if "error" in line.lower()] or [str(error)[:300]]
        seen = "does not compile" if _COMPILER.search(str(error)) else "is not lowered"
        return {"seen": seen, "first": _without_folders(lines[0])}
    atomics = _atomics(kernel)
    try:
        return {**_compared(case, kernel), "atomics": atomics}
    except Exception as error:
        return {"seen": "stops", "first": str(error).splitlines()[0][:300], "atomics": atomics}


def _compared(case: Any, kernel: Any) -> dict[str, Any]:
    import torch

    tensors = case.inputs(case.args, torch.Generator().manual_seed(SEED), "cuda")
    expected = case.reference(case.args, *tensors)["B"]
    before = tensors[1].cpu().to(torch.float64)
    kernel(*tensors)
    torch.cuda.synchronize()
    pairs = [(tensors[1], expected, "B")] + [(t, before, "the value returned for B") for t in tensors[2:]]
    for got, want, what in pairs:
        wrong = (got.cpu().to(torch.float64) != want).nonzero().flatten().tolist()
        if wrong:
            first = f"{what}[{wrong[0]}] is {got[wrong[0]].item()}, expected {want[wrong[0]].item()}"
            return {"seen": "wrong", "count": len(wrong), "of": want.numel(), "first": first}
    return {"seen": "right"}


def _atomics(kernel: Any) -> list[str]:
    """Opcodes of atomics, reductions, fences and what invalidates caches, of the kernel's own source for this GPU."""
    import tilelang
    import torch

    major, minor = torch.cuda.get_device_capability()
    package = Path(tilelang.__file__).parent
    dumps = shutil.which("cuobjdump") is not None
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "k.cu").write_text(kernel.get_kernel_source())
        includes = [f"-I{package / 'src'}", f"-I{package / '3rdparty' / 'cutlass' / 'include'}"]
        options = ["-std=c++20", f"-arch=sm_{major}{minor}a", "-w", "-cubin" if dumps else "-ptx", "-o", "out"]
        done = subprocess.run(["nvcc", *options, *includes, "k.cu"], cwd=place, capture_output=True, check=False)
        if done.returncode:
            return ["unknown: nvcc failed"]
        command = ["cuobjdump", "-sass", "out"] if dumps else ["cat", "out"]
        told = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    return list(dict.fromkeys(match[1] for line in told.splitlines() if (match := _OPCODE.match(line))))


def _without_folders(line: str) -> str:
    return re.sub(r"\S*/(?=[^/\s]+)", "", line)[:300]


def _machine() -> dict[str, str]:
    import tilelang
    import torch

    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    device, driver = said.splitlines()[0].split(", ")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    about = {"date": today, "device": device, "driver": driver, "seed": str(SEED)}
    return {**about, "tilelang": tilelang.__version__, "torch": torch.__version__}


if __name__ == "__main__":
    if sys.argv[1] == "--case":
        print(json.dumps(_one(sys.argv[2])), flush=True)
    else:
        main(sys.argv[1])
