"""What kernels do with their parameters, read from snapshots of every release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.program.roles import Roles, roles
from tlcheck.snapshot import codec

ERA = Path(__file__).parents[2] / "fixtures" / "era"
KINDS = {
    "annotated_gemm": Roles((), ("B",), float_atomics=True),
    "cast_bf16": Roles((), ("B",), float_atomics=True),
    "shared_parallel": Roles((), ("B",), float_atomics=True),
    "previous_value": Roles(("B",), ("N",), float_atomics=False),
}


def cases() -> list[tuple[str, str]]:
    files = sorted(file.name for file in ERA.glob("*.json"))
    return [(name, file) for name in KINDS for file in files if file.startswith(f"{name}-")]


@pytest.mark.parametrize(("name", "file"), cases())
def test_roles_are_the_same_in_all_releases(name: str, file: str) -> None:
    assert roles(codec.loads((ERA / file).read_text())) == KINDS[name]
