"""T.Persistent: TileLang binds the coordinates of a tile before the loop whose variable they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, multiply, number, variable
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Bind, For, Stmt, Store

WAVES, BLOCKS = 3, 4


def persistent(loops: bool) -> dict[str, np.ndarray]:
    """Each block stores 1 + its number at tile `w * 4 + block` of each wave w."""
    kernel, w = Kernel(blocks=BLOCKS), variable("w")
    target = kernel.tensor("B", "int32", (WAVES * BLOCKS,))
    tile, following = variable("tile"), variable("following")
    body: Stmt = Store(target, (tile,), add(following, add(kernel.bx, multiply(tile, -1))))
    return kernel.run(
        Bind(tile, add(multiply(w, BLOCKS), kernel.bx)),
        Bind(following, add(tile, 1)),
        For(w, number(0), number(WAVES), "serial", body) if loops else body,
    )


def test_coordinates_follow_the_loop() -> None:
    assert persistent(True)["B"].tolist() == [1 + n % BLOCKS for n in range(WAVES * BLOCKS)]


def test_without_the_loop_they_have_no_value() -> None:
    with pytest.raises(NotModelled, match="variable w without a value"):
        persistent(False)
