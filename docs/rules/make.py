"""Run the commands that the pages of rules show, and put what they print below them, in the rules' docstrings.

python docs/rules/make.py, then `make docs`. Commands about saved snapshots need no toolchain, others the pinned one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = ROOT / "tlcheck" / "verdicts" / "rules"
KERNELS = ROOT / "tests" / "wrong_code" / "kernels.py"  # a user's `kernels.py` on the pages
EXAMPLE = re.compile(
    r"```python\n(?P<code>[^`]*?)```\n\n(?P<head>```\n\$ (?P<command>tlcheck check [^\n]*)\n)(?P<output>.*?)```", re.S
)
SECONDS = re.compile(r"  \d+\.\d s$", re.MULTILINE)


def output_of(command: str, code: str) -> str:
    """Return what a command prints on 100 columns. code: the file that it names, if that is none of the project's."""
    words = shlex.split(command)
    file = Path(words[2].partition("::")[0])
    with tempfile.TemporaryDirectory() as folder:
        place = ROOT
        if not (ROOT / file).exists():
            place = Path(folder)
            (place / file).write_text(KERNELS.read_text() if file.name == KERNELS.name else code)
        run = [sys.executable, "-m", "tlcheck", *words[1:]]
        env = {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(run, cwd=place, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stderr}")
    return SECONDS.sub("", done.stdout)


def main() -> None:
    """Leave out the page of TLL004, whose kernel has another form in each run: a test holds it."""
    for file in sorted(RULES.glob("tl*_*.py")):
        if file.name.startswith("tll004"):
            continue
        text = file.read_text(encoding="utf-8")
        made = EXAMPLE.sub(lambda m: m[0].replace(m["output"], output_of(m["command"], m["code"])), text)
        if made != text:
            file.write_text(made, encoding="utf-8")
            print(file.name)


if __name__ == "__main__":
    main()
