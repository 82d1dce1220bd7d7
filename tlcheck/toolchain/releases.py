"""The TileLang releases that tlcheck knows, and what each needs beside itself to import and lower without a GPU.

Facts only. A release that is not listed is tried as it is: pip decides, with torch fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

PINNED = "0.1.15"
TORCH = "2.13.0"  # the same for every toolchain, installed once and shared


@dataclass(frozen=True)
class KnownRelease:
    """One release: the exact packages that go with it, as pip requirements."""

    version: str
    pins: tuple[str, ...]
    note: str = ""


# z3-solver takes part in lowering from 0.1.7.post1 on, so that its version belongs to the toolchain.
_Z3 = "z3-solver==4.15.4.0"

# Linked against the CUDA runtime and nvrtc. The runtime is a small wheel, and kernels that are run on a GPU need the
# real one; nvrtc is large and never called when nvcc compiles: it is stubbed, as is the driver (see stubs.py).
_CUDA_12 = "nvidia-cuda-runtime-cu12==12.9.79"
_CUDA_13 = "nvidia-cuda-runtime>=13,<14"

_LINKED = "links libcuda, libcudart and libnvrtc"
_FFI_TWICE = "a newer apache-tvm-ffi fails at import: its class ffi.Tensor is registered twice"

_TABLE = (
    KnownRelease("0.1.6.post2", (_CUDA_12,), _LINKED),
    KnownRelease("0.1.7", ("apache-tvm-ffi==0.1.1", _CUDA_12), _LINKED),
    KnownRelease("0.1.7.post1", ("apache-tvm-ffi==0.1.7", _Z3, _CUDA_12), _LINKED),
    KnownRelease("0.1.7.post2", ("apache-tvm-ffi==0.1.7", _Z3, _CUDA_13), _LINKED + ", of CUDA 13"),
    KnownRelease("0.1.7.post3", ("apache-tvm-ffi==0.1.7", _Z3, _CUDA_12), "links libcudart and libnvrtc"),
    KnownRelease("0.1.8", ("apache-tvm-ffi==0.1.9", _Z3), _FFI_TWICE),
    KnownRelease("0.1.9", ("apache-tvm-ffi==0.1.11", _Z3), _FFI_TWICE),
    KnownRelease("0.1.10", ("apache-tvm-ffi==0.1.11", _Z3), _FFI_TWICE),
    KnownRelease("0.1.11", ("apache-tvm-ffi==0.1.11", _Z3), _FFI_TWICE),
    KnownRelease("0.1.12", ("apache-tvm-ffi==0.1.11", _Z3), _FFI_TWICE),
    KnownRelease("0.1.13", ("apache-tvm-ffi==0.1.12", _Z3)),
    KnownRelease("0.1.14", ("apache-tvm-ffi==0.1.12", _Z3)),
    KnownRelease("0.1.15", ("apache-tvm-ffi==0.1.12", _Z3)),
)

RELEASES = {release.version: release for release in _TABLE}


def pins_of(version: str) -> tuple[str, ...]:
    """The pins of a release, or of the release that a local build (`0.1.15+cu128`) was made from; else none."""
    release = RELEASES.get(Version(version).public)
    return release.pins if release else ()
