"""The torch that toolchains share makes CPU tensors here: all but the launch is what runs on a device."""

from __future__ import annotations

import sys

from tlcheck.toolchain import environment, releases, stamped_folders

_TORCH = environment.torch_folder(releases.TORCH)

if stamped_folders.read_stamp(_TORCH) is not None and str(_TORCH) not in sys.path:
    sys.path.append(str(_TORCH))
