"""`make examples TILELANG=DIR`: captures the kernels of TileLang's own examples and tests, for the census.

Takes hours of processor time. One folder of examples, or one file of tests, at a time: what a script does to its
process concerns no other. A folder that was done is not done again, so that it may be stopped and go on.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ARCHS = ("sm_90", "sm_80")
OTHER_ARCHS = ("amd", "aws", "sm100", "sm120", "tcgen05", "metal", "webgpu", "llvm")  # in a folder's name
REQUIREMENTS = ("einops",)  # which many examples import
TIMEOUT = 120
SETTINGS = f"[tool.tlcheck]\nrequirements = {list(REQUIREMENTS)}\n"
OPTIONS = ("--keep-going", "--force", "--timeout", str(TIMEOUT))


def sources(checkout: Path) -> Iterator[tuple[str, Path]]:
    """Yield where the snapshots of a script or a folder of scripts go, and the path of it."""
    for folder in sorted((checkout / "examples").iterdir()):
        if not any(word in folder.name for word in OTHER_ARCHS) and (folder.is_dir() or folder.suffix == ".py"):
            yield f"examples/{folder.stem}", folder
    for file in sorted((checkout / "testing" / "python").rglob("test_*.py")):
        if not any(word in file.parent.name for word in OTHER_ARCHS):
            yield f"tests/{file.parent.name}-{file.stem}", file


def capture(source: Path, arch: str, folder: Path, home: Path) -> str:
    """Capture one source's kernels into a folder, and return a line about it."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tlcheck", "capture", str(source), "-o", str(folder), "--arch", arch, *OPTIONS]
    with (folder / "log").open("w", encoding="utf-8") as log:
        done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=home, check=False)
    (folder / "done").touch()
    return f"exit code {done.returncode}, {len(list(folder.glob('*.snapshot.json')))} kernels"


def main(checkout: Path, home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "tlcheck", "toolchain", "install", "pinned"], cwd=home, check=True)
    for arch in ARCHS:
        for name, source in sources(checkout):
            folder = home / arch / name
            if not (folder / "done").exists():
                print(f"{arch} {name}: {capture(source, arch, folder, home)}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
