"""Stand-ins for a toolchain's interpreter and for compute-sanitizer: real processes that do what a plan says."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DEVICE = {"torch": "2.11.0", "cuda": "13.0", "name": "Stand-in", "arch": "sm_90", "versions": {"tilelang": "0.1.15"}}
CEILINGS = {"bytes_per_second": 4e12, "flops_per_second": 8e14}

_INTERPRETER = '''#!{python}
"""Called as a toolchain's interpreter is: with a worker's main file, --run, and the file of a task."""
import json, os, signal, sys, time
from pathlib import Path

plan = json.loads((Path(__file__).parent / "plan.json").read_text())
task = json.loads(Path(sys.argv[3]).read_text())
with (Path(__file__).parent / "tasks.jsonl").open("a") as log:
    log.write(json.dumps({{"task": task, "caching": os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING")}}) + "\\n")
steps = plan.get(task["kind"] + ":" + task.get("name", "")) or plan.get(task["kind"]) or {{}}
print(steps.get("say", ""))
sys.stdout.flush()
if "answer" in steps:
    Path(task["output"]).write_text(json.dumps(steps["answer"]))
time.sleep(steps.get("sleep", 0))
if "until_partner_ends" in steps:
    ended = Path(task["rounds"]["turns"]).with_suffix(".ended")
    for _ in range(600):
        time.sleep(0 if ended.exists() else 0.05)
    steps["exit"] = 0 if ended.exists() else 9
if "signal" in steps:
    os.kill(os.getpid(), steps["signal"])
os._exit(steps.get("exit", 0))
'''

_SANITIZER = '''#!{python}
"""Writes a log that was recorded, then becomes the command that follows."""
import os, shutil, sys
from pathlib import Path

arguments = sys.argv[1:]
tool, log = arguments[arguments.index("--tool") + 1], arguments[arguments.index("--log-file") + 1]
recorded = Path(__file__).parent / (tool + ".txt")
if recorded.exists():
    shutil.copyfile(recorded, log)
command = arguments[next(n for n, text in enumerate(arguments) if text.endswith("python")):]
os.execv(command[0], command)
'''


def make_interpreter(folder: Path, plan: Mapping[str, Any]) -> Path:
    """An interpreter that does what `plan` says for a kind of task, or for `kind:name`."""
    folder.mkdir(exist_ok=True)
    (folder / "plan.json").write_text(json.dumps({"device": {"answer": {"phase": "done", "device": DEVICE}}, **plan}))
    return _script(folder / "python", _INTERPRETER)


def make_sanitizer(folder: Path, logs: Mapping[str, str]) -> Path:
    """A `compute-sanitizer` that writes these logs, by tool."""
    folder.mkdir(exist_ok=True)
    for tool, text in logs.items():
        (folder / f"{tool}.txt").write_text(text)
    return _script(folder / "compute-sanitizer", _SANITIZER)


def tasks(folder: Path) -> list[dict[str, Any]]:
    """Return what the interpreter was asked to do, in order."""
    lines = (folder / "tasks.jsonl").read_text().splitlines()
    return [json.loads(line)["task"] for line in lines]


def _script(file: Path, text: str) -> Path:
    file.write_text(text.format(python=sys.executable))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file
