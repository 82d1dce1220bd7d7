"""Stand-ins for the CUDA libraries that old releases are linked against and lowering never calls.

TileLang loads its own libraries with RTLD_NOW, so that a stub has to define every symbol that they leave undefined.
Each stub has a folder of its own, put on LD_LIBRARY_PATH only where the loader finds no real library.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.toolchain.native import Symbol, read_needs

# Library -> its functions' names. Driver symbols carry no version, so that the name has to tell whose they are.
_FUNCTIONS = {"libcuda.so": re.compile(r"cu[A-Z]\w*"), "libnvrtc.so": re.compile(r"nvrtc\w*")}
_CUDA_LIBRARY = re.compile(r"(lib(?:cuda|cudart|nvrtc)\.so)\.\d+")

_UNKNOWN_ERROR = 999  # CUDA_ERROR_UNKNOWN: whoever calls a stub learns that nothing works


def cuda_needs(libraries: Iterable[Path]) -> dict[str, frozenset[Symbol]]:
    """The CUDA libraries (sonames) that these libraries ask the loader for -> the symbols to stub, if it can be."""
    needs = [read_needs(path) for path in libraries]
    symbols = {symbol for need in needs for symbol in need.symbols}
    sonames = {soname for need in needs for soname in need.libraries}
    return {soname: _symbols_of(soname, symbols) for soname in sorted(sonames) if _CUDA_LIBRARY.fullmatch(soname)}


def _symbols_of(soname: str, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
    functions = _FUNCTIONS.get(soname.rpartition(".")[0])
    return frozenset(symbol for symbol in symbols if functions and functions.fullmatch(symbol.name))


def compile_stubs(needs: Mapping[str, frozenset[Symbol]], folder: Path) -> None:
    """Make `folder/SONAME/SONAME` for each library that can be stubbed. Raises UsageError without a C compiler."""
    for soname, symbols in needs.items():
        if symbols:
            _compile(soname, symbols, folder / soname)


def _compile(soname: str, symbols: frozenset[Symbol], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source, script = folder / "stub.c", folder / "stub.map"
    names = sorted({symbol.name for symbol in symbols})
    source.write_text("".join(f"int {name}(void) {{ return {_UNKNOWN_ERROR}; }}\n" for name in names))
    # bind each symbol to the version that the release asks for, as in the real library
    versioned = sorted((symbol.version, symbol.name) for symbol in symbols if symbol.version)
    groups = groupby(versioned, key=lambda pair: pair[0])
    script.write_text(
        "".join(f"{version} {{ global: {_list(name for _, name in group)} }};\n" for version, group in groups)
    )
    flags = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    command = [compiler(), "-shared", "-fPIC", "-w", "-o", str(folder / soname), str(source), f"-Wl,-soname,{soname}"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"cannot compile a stub {soname}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")


def _list(names: Iterable[str]) -> str:
    return " ".join(f"{name};" for name in names)


def compiler() -> str:
    """A C compiler. Raises UsageError without one."""
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return path
    raise UsageError("this release needs stub CUDA libraries, and no C compiler was found: install gcc (or clang)")
