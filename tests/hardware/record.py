"""Runs the cases of kernel files on a GPU and keeps inputs and outputs: `python record.py FILE... OUT.npz`.

Needs TileLang, torch and a GPU in this interpreter. Arrays are named `CASE/PLACE` (a tensor before the run, by its
place among the parameters) and `CASE/PLACE/after` where the run changed it; floating-point values are kept as float32,
which holds all of them. `about` is a JSON text: device, driver, versions, seed, and the error of each case that failed.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20261122


def main(files: list[str], out: str) -> None:
    """Record every case of `files` in processes of their own: a kernel that fails takes no other with it."""
    jobs = [(file, name) for file in files for name in _cases(file)]
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    failed: dict[str, str] = {}
    with get_context("spawn").Pool(8, maxtasksperchild=4) as pool:
        running = {name: pool.apply_async(_record, (file, name)) for file, name in jobs}
        for name, answer in running.items():
            try:
                arrays |= answer.get(timeout=120)  # a process that dies never answers
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            print(name, failed.get(name, "recorded"), flush=True)
    about = json.dumps({**_machine(), "seed": SEED, "failed": failed}, sort_keys=True)
    np.savez_compressed(out, allow_pickle=False, about=np.array(about), **dict(sorted(arrays.items())))


def _cases(file: str) -> dict[str, Any]:
    from tlcheck.case import Case

    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if isinstance(value, Case)}


def _record(file: str, name: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of one case."""
    import torch

    case = _cases(file)[name]
    kernel = case.kernel(**case.args)
    tensors = case.inputs(case.args, torch.Generator().manual_seed(SEED), "cuda")
    before = [_kept(tensor) for tensor in tensors]
    kernel(*tensors)
    torch.cuda.synchronize()
    after = [_kept(tensor) for tensor in tensors]
    found = {f"{name}/{place}": array for place, array in enumerate(before)}
    changed = [place for place, array in enumerate(after) if not np.array_equal(array, before[place], equal_nan=True)]
    return found | {f"{name}/{place}/after": after[place] for place in changed}


def _kept(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor's values on the host."""
    values = tensor.detach()
    return np.array((values.float() if values.is_floating_point() else values).cpu().numpy())


def _machine() -> dict[str, str]:
    import tilelang
    import torch

    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    device, driver = said.splitlines()[0].split(", ")
    return {"device": device, "driver": driver, "tilelang": tilelang.__version__, "torch": torch.__version__}


if __name__ == "__main__":
    main(sys.argv[1:-1], sys.argv[-1])
